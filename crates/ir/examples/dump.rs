//! Prints a bitcode file as the owned IR: `cargo run -p ir --example dump -- x.bc`.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args_os().nth(1).ok_or("usage: dump FILE")?;
    let module = ir::read_bitcode(&std::fs::read(path)?)?;
    println!("{}", ir::dump::dump(&module));
    Ok(())
}
