//! JSON: the [`Solution`] as it is.

use crate::Solution;

/// The solution as indented JSON with a final newline.
///
/// # Errors
/// When serialisation fails, which for this type means out of memory.
pub fn to_json(solution: &Solution) -> Result<String, serde_json::Error> {
    let mut text = serde_json::to_string_pretty(solution)?;
    text.push('\n');
    Ok(text)
}

/// Writes the solution as JSON without indentation, and as it is made: that of a run of millions of events has a
/// gigabyte.
///
/// # Errors
/// When it cannot be written.
pub fn write(out: &mut dyn std::io::Write, solution: &Solution) -> std::io::Result<()> {
    serde_json::to_writer(&mut *out, solution)?;
    out.write_all(b"\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::lost_update;

    #[test]
    fn json_reads_back_as_it_was() {
        let solution = lost_update();
        let text = to_json(&solution).unwrap();
        let back: Solution = serde_json::from_str(&text).unwrap();
        assert_eq!(back, solution);
        assert!(text.contains(r#""verdict": "failing-schedule""#), "{text}");
        assert!(text.contains(r#""replay": "not-run""#), "{text}");
        let mut short = Vec::new();
        write(&mut short, &solution).unwrap();
        assert!(short.len() < text.len() && short.ends_with(b"\n"));
        assert_eq!(serde_json::from_slice::<Solution>(&short).unwrap(), solution);
    }
}
