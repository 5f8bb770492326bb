//! Lists of tools and rules, as command lines of claude's kind have them: `Read,Bash(git status)`.

use turnwire::vocab::{Rule, RuleBehaviour};

use crate::say;

/// The tool that runs commands.
const SHELL: &str = "Bash";

/// What three lists come to.
#[derive(Debug, Default)]
pub struct Tools {
    /// The tools that there are; `None`: all.
    pub only: Option<Vec<String>>,
    /// What runs unasked, and what never does.
    pub rules: Vec<Rule>,
    /// Tools that the model doesn't get.
    pub without: Vec<String>,
}

/// Reads them.
pub fn read(only: Option<&str>, allowed: &[String], disallowed: &[String]) -> Tools {
    let mut tools = Tools {
        only: only.filter(|names| *names != "default").map(split),
        ..Tools::default()
    };
    for rule in allowed.iter().flat_map(|list| split(list)) {
        match parse(&rule) {
            (tool, Some(pattern)) if tool == SHELL && is_beginning(&pattern) => {
                tools
                    .rules
                    .push(made(RuleBehaviour::Allow, tool, Some(pattern)));
            }
            // A pattern can't tell where one command ends and another begins, nor where a path leads.
            (tool, Some(pattern)) if pattern.contains(['*', '?']) => say::line(format_args!(
                "{tool}({pattern}) isn't allowed beforehand: rules here are for whole tools, or for one command or path \
                 as it is written, or for what a command begins with (git:*); such calls are asked about"
            )),
            (tool, pattern) => {
                // A server's name alone is all of its tools.
                if pattern.is_none() && is_server(&tool) {
                    let all = format!("{tool}__*");
                    tools.rules.push(made(RuleBehaviour::Allow, all, None));
                }
                tools.rules.push(made(RuleBehaviour::Allow, tool, pattern));
            }
        }
    }
    for rule in disallowed.iter().flat_map(|list| split(list)) {
        match parse(&rule) {
            (tool, None) => {
                tools.without.push(tool.clone());
                // A server's name alone is all of its tools.
                tools
                    .rules
                    .push(made(RuleBehaviour::Deny, tool.clone(), None));
                if tool.starts_with("mcp__") {
                    tools
                        .rules
                        .push(made(RuleBehaviour::Deny, format!("{tool}__*"), None));
                }
            }
            (tool, Some(pattern)) => {
                tools
                    .rules
                    .push(made(RuleBehaviour::Deny, tool, Some(wide(&pattern))));
            }
        }
    }
    tools
}

fn made(behaviour: RuleBehaviour, tool: String, pattern: Option<String>) -> Rule {
    Rule {
        behaviour,
        tool: tool.as_str().into(),
        pattern: pattern.as_deref().map(Into::into),
    }
}

/// A tool's name, and what stands in brackets behind it.
fn parse(rule: &str) -> (String, Option<String>) {
    let Some((tool, rest)) = rule.split_once('(') else {
        return (rule.to_owned(), None);
    };
    let pattern = rest.strip_suffix(')').unwrap_or(rest).trim();
    let all = pattern.is_empty() || matches!(pattern, "*" | ":*");
    (tool.trim().to_owned(), (!all).then_some(pattern.to_owned()))
}

/// Whether it names a server of tools, and no tool of it.
fn is_server(tool: &str) -> bool {
    let server = tool.strip_prefix("mcp__");
    server.is_some_and(|server| !server.is_empty() && !server.contains("__"))
}

/// Whether it is what a command begins with, `git:*`, and nothing beyond that.
fn is_beginning(pattern: &str) -> bool {
    let begin = pattern.strip_suffix(":*");
    begin.is_some_and(|begin| !begin.is_empty() && !begin.contains(['*', '?']))
}

/// A pattern of what is denied: wherever it stands in a command, however a path to it is written.
fn wide(pattern: &str) -> String {
    let path = pattern
        .strip_suffix(":*")
        .unwrap_or(pattern)
        .trim_start_matches("./")
        .trim_start_matches(['/', '~']);
    format!("*{}*", path.replace("**", "*"))
}

/// The parts of a list, at commas and white space that stand in no brackets.
fn split(list: &str) -> Vec<String> {
    let (mut parts, mut part, mut depth) = (Vec::new(), String::new(), 0_u32);
    for letter in list.chars() {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' | ' ' | '\t' | '\n' if depth == 0 => {
                parts.push(std::mem::take(&mut part));
                continue;
            }
            _ => {}
        }
        part.push(letter);
    }
    parts.push(part);
    parts.retain(|part| !part.is_empty());
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(tools: &Tools) -> Vec<String> {
        let rules = tools.rules.iter();
        rules
            .map(|rule| match &rule.pattern {
                Some(pattern) => format!("{:?} {}({pattern})", rule.behaviour, rule.tool),
                None => format!("{:?} {}", rule.behaviour, rule.tool),
            })
            .collect()
    }

    #[test]
    fn lists_are_cut_at_commas_and_spaces_outside_of_brackets() {
        let lists = [
            "Read,Bash(git add a, b) Write".to_owned(),
            "mcp__house__add,mcp__shop".to_owned(),
        ];
        let tools = read(Some("Read,Bash"), &lists, &[]);
        assert_eq!(
            texts(&tools),
            [
                "Allow Read",
                "Allow Bash(git add a, b)",
                "Allow Write",
                "Allow mcp__house__add",
                "Allow mcp__shop__*",
                "Allow mcp__shop"
            ]
        );
        assert_eq!(tools.only.unwrap(), ["Read", "Bash"]);
        assert_eq!(read(Some(""), &[], &[]).only.unwrap(), [""; 0]);
        assert!(read(Some("default"), &[], &[]).only.is_none());
    }

    #[test]
    fn what_a_pattern_would_allow_too_much_of_is_asked_about_and_what_it_denies_is_denied_widely() {
        let allowed =
            ["Bash(git:*),Bash(npm run *:*),Read(src/**),Read(a:*),Bash(*),Bash(:*)".to_owned()];
        let denied = ["Bash,Read(./secrets/**),mcp__house,Bash(rm:*)".to_owned()];
        let tools = read(None, &allowed, &denied);
        assert_eq!(
            texts(&tools),
            [
                "Allow Bash(git:*)",
                "Allow Bash",
                "Allow Bash",
                "Deny Bash",
                "Deny Read(*secrets/**)",
                "Deny mcp__house",
                "Deny mcp__house__*",
                "Deny Bash(*rm*)"
            ]
        );
        assert_eq!(tools.without, ["Bash", "mcp__house"]);
    }
}
