//! What the model calls the tools of servers, and which of them it gets.

use std::collections::{BTreeMap, BTreeSet};

use sha2::{Digest as _, Sha256};
use turnwire::vocab::{McpFact, McpTool, RawJson, Route, SideEffect, Text, ToolSpec};

use super::{Bounds, Filter, ListedTool};

/// The tools of all servers, as the model gets them.
#[derive(Debug, Default)]
pub(super) struct Listing {
    pub(super) specs: Vec<ToolSpec>,
    /// The tools of each server, in their order.
    pub(super) of: Vec<Vec<McpTool>>,
    /// By what the model calls a tool: the server's place, and the tool's name there.
    pub(super) routes: BTreeMap<Text, (usize, String)>,
    pub(super) facts: Vec<McpFact>,
}

/// What is listed: servers in their order, and what names are taken.
pub(super) struct Sources<'a> {
    pub(super) servers: &'a [(&'a str, &'a [ListedTool])],
    pub(super) taken: &'a BTreeSet<Text>,
    pub(super) filter: &'a Filter,
    pub(super) bounds: &'a Bounds,
}

impl Listing {
    /// The same servers with the same tools get the same names, whoever came first.
    pub(super) fn of(sources: &Sources<'_>) -> Listing {
        let mut listing = Listing::default();
        for (at, (server, tools)) in sources.servers.iter().enumerate() {
            let tools = listing.of_one(at, server, tools, sources);
            listing.of.push(tools);
        }
        listing
    }

    fn of_one(
        &mut self,
        at: usize,
        server: &str,
        tools: &[ListedTool],
        sources: &Sources<'_>,
    ) -> Vec<McpTool> {
        let bounds = sources.bounds;
        let name: Text = server.into();
        let mut seen = BTreeSet::new();
        let mut taken = Vec::new();
        for tool in tools {
            let own: Text = tool.name.as_str().into();
            if !seen.insert(tool.name.as_str()) {
                self.facts.push(McpFact::Duplicate {
                    server: name.clone(),
                    tool: own,
                });
                continue;
            }
            if tool.schema.len() > bounds.schema {
                self.facts.push(McpFact::LeftOut {
                    server: name.clone(),
                    tool: own,
                    why: format!("its schema has more than {} bytes", bounds.schema).into(),
                });
                continue;
            }
            let wanted = format!("mcp__{server}__{}", tool.name);
            let free =
                |called: &str| !sources.taken.contains(called) && !self.routes.contains_key(called);
            let Some(called) = called(&wanted, bounds.name, free) else {
                self.facts.push(McpFact::Duplicate {
                    server: name.clone(),
                    tool: own,
                });
                continue;
            };
            if !sources.filter.lets(&wanted) && !sources.filter.lets(&called) {
                continue;
            }
            if self.specs.len() >= bounds.tools || taken.len() >= bounds.tools_of_one {
                self.facts.push(match taken.len() {
                    0 => McpFact::OverCap {
                        server: name.clone(),
                    },
                    kept => McpFact::Capped {
                        server: name.clone(),
                        kept: u32::try_from(kept).unwrap_or(u32::MAX),
                    },
                });
                break;
            }
            let called: Text = called.into();
            if *called != *wanted {
                self.facts.push(McpFact::Renamed {
                    server: name.clone(),
                    from: own.clone(),
                    to: called.clone(),
                });
            }
            let description: Text = cut(&tool.description, bounds.description).into();
            self.routes.insert(called.clone(), (at, tool.name.clone()));
            self.specs.push(ToolSpec {
                name: called.clone(),
                label: tool.title.as_deref().map(Into::into),
                description: description.clone(),
                schema: RawJson(tool.schema.as_str().into()),
                // What a server says of its own tools is a hint, and no reason not to ask.
                side_effect: SideEffect::Unknown,
                hidden: false,
                uri_arg: None,
                route: Route::Driver,
            });
            taken.push(McpTool {
                name: own,
                called,
                description,
            });
        }
        taken
    }
}

/// What the model calls a tool: the wanted name if it is one and free, else the most of it with a mark that is the same each
/// time. `None`: that isn't free either.
fn called(wanted: &str, most: usize, free: impl Fn(&str) -> bool) -> Option<String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let clean: String = wanted
        .chars()
        .map(|c| if plain(c) { c } else { '_' })
        .collect();
    if clean.len() <= most && free(&clean) {
        return Some(clean);
    }
    let hash = Sha256::digest(wanted.as_bytes());
    let mark: String = hash
        .iter()
        .take(4)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    // All of it is ASCII.
    let kept = clean.get(..most.saturating_sub(mark.len() + 1).min(clean.len()));
    let marked = format!("{}_{mark}", kept.unwrap_or_default());
    free(&marked).then_some(marked)
}

/// The beginning of a text, with a mark if something is missing.
fn cut(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let mark = "… [cut]";
    let mut end = most.saturating_sub(mark.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}{mark}", text.get(..end).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tools(names: &[&str]) -> Vec<ListedTool> {
        let tool = |name: &&str| ListedTool {
            name: (*name).to_owned(),
            description: format!("does {name}"),
            schema: r#"{"type":"object"}"#.to_owned(),
            ..ListedTool::default()
        };
        names.iter().map(tool).collect()
    }

    fn list(
        servers: &[(&str, &[&str])],
        taken: &[&str],
        change: impl FnOnce(&mut Bounds, &mut Filter),
    ) -> Listing {
        let tools: Vec<(&str, Vec<ListedTool>)> = servers
            .iter()
            .map(|(name, names)| (*name, tools(names)))
            .collect();
        let servers: Vec<(&str, &[ListedTool])> = tools
            .iter()
            .map(|(name, tools)| (*name, tools.as_slice()))
            .collect();
        let (mut bounds, mut filter) = (Bounds::default(), Filter::default());
        change(&mut bounds, &mut filter);
        Listing::of(&Sources {
            servers: &servers,
            taken: &taken.iter().map(|name| Text::from(*name)).collect(),
            filter: &filter,
            bounds: &bounds,
        })
    }

    fn names(listing: &Listing) -> Vec<&str> {
        listing.specs.iter().map(|spec| &*spec.name).collect()
    }

    #[test]
    fn tools_are_called_by_server_and_name_and_never_trusted_to_only_read() {
        let listing = list(&[("files", &["read"]), ("net", &["read"])], &[], |_, _| {});
        assert_eq!(names(&listing), ["mcp__files__read", "mcp__net__read"]);
        assert_eq!(listing.facts, []);
        assert_eq!(listing.routes["mcp__net__read"], (1, "read".to_owned()));
        let mut effects = listing.specs.iter().map(|spec| spec.side_effect);
        assert!(effects.all(|effect| effect == SideEffect::Unknown));
    }

    #[test]
    fn a_name_that_cant_be_or_is_taken_is_another_one_each_time_the_same() {
        let long = "x".repeat(80);
        let servers: &[(&str, &[&str])] = &[("a b", &["t", &long]), ("a_b", &["t", "own"])];
        let listing = list(servers, &["mcp__a_b__own"], |_, _| {});
        let called = names(&listing);
        assert_eq!(called[0], "mcp__a_b__t");
        assert!(called[1].len() == 64 && called[1].starts_with("mcp__a_b__xxx"));
        assert!(called[2].starts_with("mcp__a_b__t_"), "{}", called[2]);
        assert!(called[3].starts_with("mcp__a_b__own_"));
        assert_eq!(listing.facts.len(), 4);
        assert!(
            listing
                .facts
                .iter()
                .all(|fact| matches!(fact, McpFact::Renamed { .. }))
        );
        let again = list(servers, &["mcp__a_b__own"], |_, _| {});
        assert_eq!(names(&again), called);
    }

    #[test]
    fn too_many_too_large_and_double_tools_are_left_out_and_that_is_said() {
        let capped = list(
            &[("a", &["1", "2", "3"]), ("b", &["1", "2"]), ("c", &["1"])],
            &[],
            |bounds, _| {
                bounds.tools_of_one = 2;
                bounds.tools = 3;
            },
        );
        assert_eq!(names(&capped), ["mcp__a__1", "mcp__a__2", "mcp__b__1"]);
        let of = |server: &str, kept| McpFact::Capped {
            server: server.into(),
            kept,
        };
        let over = McpFact::OverCap { server: "c".into() };
        assert_eq!(capped.facts, [of("a", 2), of("b", 1), over]);
        let double = list(&[("a", &["1", "1"])], &[], |_, _| {});
        let tool = McpFact::Duplicate {
            server: "a".into(),
            tool: "1".into(),
        };
        assert_eq!((double.specs.len(), double.facts), (1, vec![tool]));
        let large = list(&[("a", &["1"])], &[], |bounds, _| bounds.schema = 3);
        assert!(large.specs.is_empty() && matches!(large.facts[..], [McpFact::LeftOut { .. }]));
    }

    #[test]
    fn long_descriptions_are_cut_and_filtered_tools_arent_there() {
        let listing = list(&[("a", &["größer", "t"])], &[], |bounds, filter| {
            bounds.description = 12;
            filter.without = vec!["mcp__a__t".to_owned()];
        });
        assert_eq!(listing.specs.len(), 1);
        let text = &*listing.specs[0].description;
        assert!(text.len() <= 12 && text.ends_with("… [cut]"), "{text}");
    }
}
