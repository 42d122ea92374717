//! Reads lines of a count and a symbol from standard input (`benches/effects-coverage.sh` makes
//! them) and says how many of the imports are described, and which of the others come up most.

use std::io::{self, BufRead};

fn main() -> io::Result<()> {
    let (mut imports, mut described, mut functions, mut known) = (0u64, 0u64, 0u64, 0u64);
    let mut missing = Vec::new();
    for line in io::stdin().lock().lines() {
        let line = line?;
        let Some((count, symbol)) = line.split_once(' ') else { continue };
        let Ok(count) = count.parse::<u64>() else {
            println!("{symbol} {count}");
            continue;
        };
        (imports, functions) = (imports + count, functions + 1);
        if ir::effects::effect(symbol).is_some() {
            (described, known) = (described + count, known + 1);
        } else {
            missing.push((count, symbol.to_owned()));
        }
    }
    let percent = |part: u64, whole: u64| 100.0 * part as f64 / whole.max(1) as f64;
    println!("{functions} functions, {known} described ({:.1} %)", percent(known, functions));
    println!("{imports} imports, {described} described ({:.2} %)", percent(described, imports));
    missing.sort_by(|a, b| b.cmp(a));
    for (count, symbol) in missing.iter().take(25) {
        println!("{count:>6} {symbol}");
    }
    Ok(())
}
