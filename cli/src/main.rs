//! The program `turnwire`.
fn main() {}
