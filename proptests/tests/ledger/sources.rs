//! Finds the tests of the workspace in its sources.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// One test.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Test {
    /// Its file, from the root of the workspace, with `/` between the folders.
    pub path: String,
    /// The function.
    pub name: String,
}

/// Every test of every package, by file and name. One that is ignored is none.
///
/// # Errors
/// A file that can't be read, or isn't Rust.
pub fn tests(root: &Path) -> io::Result<Vec<Test>> {
    let mut tests = Vec::new();
    for package in fs::read_dir(root)? {
        let package = package?.path();
        if package.join("Cargo.toml").is_file() {
            for folder in ["src", "tests", "fuzz_targets"] {
                walk(root, &package.join(folder), &mut tests)?;
            }
        }
    }
    tests.sort();
    Ok(tests)
}

fn walk(root: &Path, folder: &Path, tests: &mut Vec<Test>) -> io::Result<()> {
    if !folder.is_dir() {
        return Ok(());
    }
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            walk(root, &path, tests)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let parts = path.strip_prefix(root).unwrap_or(&path).iter();
            let parts: Vec<_> = parts.map(|part| part.to_string_lossy()).collect();
            let shown = parts.join("/");
            let names = names(&fs::read_to_string(&path)?)
                .map_err(|fault| io::Error::other(format!("{shown}: {fault}")))?;
            tests.extend(names.into_iter().map(|name| Test {
                path: shown.clone(),
                name,
            }));
        }
    }
    Ok(())
}

/// The names of a file's tests, those inside macros too.
fn names(source: &str) -> Result<Vec<String>, String> {
    let tokens: TokenStream = source.parse().map_err(|fault| format!("{fault}"))?;
    let mut found = Found::default();
    found.read(tokens.clone());
    found.called(tokens);
    Ok(found.names)
}

#[derive(Default)]
struct Found {
    names: Vec<String>,
    /// Macros of the file whose tests are named where they are called.
    makers: BTreeSet<String>,
}

impl Found {
    /// Reads functions behind `#[test]` or `#[tokio::test]` at any depth.
    fn read(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let (mut test, mut ignored) = (false, false);
        let mut maker = None;
        for (index, token) in tokens.iter().enumerate() {
            let next = tokens.get(index + 1);
            match token {
                TokenTree::Punct(punct) if punct.as_char() == '#' => {
                    if let Some(path) = next.and_then(attribute) {
                        test |= path.last().is_some_and(|last| last == "test");
                        ignored |= path == ["ignore"];
                    }
                }
                TokenTree::Ident(word) if word == "fn" => {
                    if let (true, false, Some(TokenTree::Ident(name))) = (test, ignored, next) {
                        self.names.push(name.to_string());
                    }
                    (test, ignored) = (false, false);
                }
                TokenTree::Ident(word) if word == "macro_rules" => {
                    maker = tokens.get(index + 2).map(TokenTree::to_string);
                }
                TokenTree::Group(group) => {
                    if let Some(name) = maker.take() {
                        // The tests inside it are named by a variable, if it has any.
                        if names_by_variable(group.stream()) {
                            self.makers.insert(name);
                        }
                    }
                    self.read(group.stream());
                }
                TokenTree::Ident(_) | TokenTree::Punct(_) | TokenTree::Literal(_) => {}
            }
        }
    }

    /// Reads the calls of macros that make tests, at any depth: the first word of each entry is a name, or, where a
    /// block of nothing but words follows it, each word of the block is.
    fn called(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        for (index, token) in tokens.iter().enumerate() {
            if let TokenTree::Group(group) = token {
                self.called(group.stream());
            }
            let TokenTree::Ident(word) = token else {
                continue;
            };
            let bang = matches!(tokens.get(index + 1), Some(TokenTree::Punct(punct)) if punct.as_char() == '!');
            if let (true, true, Some(TokenTree::Group(group))) = (
                bang,
                self.makers.contains(&word.to_string()),
                tokens.get(index + 2),
            ) {
                let (mut first, mut after_name) = (true, false);
                for token in group.stream() {
                    match token {
                        TokenTree::Ident(name) if first => self.names.push(name.to_string()),
                        TokenTree::Group(block) if after_name => {
                            if let Some(words) = words(block.stream()) {
                                self.names.pop();
                                self.names.extend(words);
                                (first, after_name) = (true, false);
                                continue;
                            }
                        }
                        TokenTree::Punct(punct) if matches!(punct.as_char(), ',' | ';') => {
                            (first, after_name) = (true, false);
                            continue;
                        }
                        TokenTree::Group(_)
                        | TokenTree::Ident(_)
                        | TokenTree::Punct(_)
                        | TokenTree::Literal(_) => {}
                    }
                    (first, after_name) = (false, first);
                }
            }
        }
    }
}

/// The words of a block that has nothing else, and at least one.
fn words(tokens: TokenStream) -> Option<Vec<String>> {
    let words = tokens.into_iter().map(|token| match token {
        TokenTree::Ident(word) => Some(word.to_string()),
        TokenTree::Group(_) | TokenTree::Punct(_) | TokenTree::Literal(_) => None,
    });
    let words: Vec<String> = words.collect::<Option<_>>()?;
    (!words.is_empty()).then_some(words)
}

/// The words of an attribute's path, if this is the bracket of one.
fn attribute(token: &TokenTree) -> Option<Vec<String>> {
    let TokenTree::Group(group) = token else {
        return None;
    };
    if group.delimiter() != Delimiter::Bracket {
        return None;
    }
    let mut path = Vec::new();
    for token in group.stream() {
        match token {
            TokenTree::Ident(word) => path.push(word.to_string()),
            TokenTree::Punct(punct) if punct.as_char() == ':' => {}
            TokenTree::Group(_) | TokenTree::Punct(_) | TokenTree::Literal(_) => break,
        }
    }
    Some(path)
}

/// Whether a macro makes a function whose name its caller gives.
fn names_by_variable(tokens: TokenStream) -> bool {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    tokens.iter().enumerate().any(|(index, token)| match token {
        TokenTree::Ident(word) if word == "fn" => {
            matches!(tokens.get(index + 1), Some(TokenTree::Punct(punct)) if punct.as_char() == '$')
        }
        TokenTree::Group(group) => names_by_variable(group.stream()),
        TokenTree::Ident(_) | TokenTree::Punct(_) | TokenTree::Literal(_) => false,
    })
}

#[test]
fn tests_are_found_wherever_they_stand() {
    let source = r##"
        //! #[test] fn in_a_comment() {}
        #[test]
        fn plain() { let text = "#[test] fn in_a_text() {}"; fn inner() {} }
        #[tokio::test(flavor = "current_thread")]
        async fn on_a_runtime() {}
        #[test]
        #[ignore = "slow"]
        fn ignored() {}
        #[test]
        #[should_panic]
        pub fn with_more() {}
        fn no_test() {}
        #[cfg(test)]
        mod tests {
            fn helper() {}
            #[test] fn nested() {}
        }
        proptest! {
            #![proptest_config(cases(4))]
            /// Says more.
            #[test]
            fn in_a_macro(a in any::<bool>()) {}
        }
        macro_rules! made {
            ($($name:ident: $id:literal;)*) => {$( #[test] fn $name() { run($id) } )*};
        }
        made! {
            first: "A";
            second: "B";
        }
        other! { no: "C"; }
        macro_rules! suite {
            ($driver:ty) => { $crate::made! { $driver; session { third fourth } writer { fifth } } };
        }
    "##;
    let found = names(source).unwrap();
    let wanted = [
        "plain",
        "on_a_runtime",
        "with_more",
        "nested",
        "in_a_macro",
        "first",
        "second",
        "third",
        "fourth",
        "fifth",
    ];
    assert_eq!(found, wanted);
    assert!(names("fn broken( {").is_err());
}
