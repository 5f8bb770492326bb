//! What a server sees of us: a client that has a root, and can't be asked for anything else.

// Roots are on their way out of the protocol; servers of today ask for them.
#![expect(deprecated, reason = "servers of today ask for roots")]

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::model::{
    ClientCapabilities, ClientConfig, Implementation, ListRootsResult, ProgressNotificationParam,
    ProgressToken, Root, RootsCapabilities,
};
use rmcp::service::{NotificationContext, RequestContext, RoleClient};
use rmcp::{ClientHandler, ErrorData};
use tokio::sync::{Notify, mpsc};
use turnwire_io::mcp::Place;

/// Messages of progress that wait to be told.
const WAITING: usize = 16;

/// Calls that are told of their progress.
#[derive(Debug, Default)]
pub(super) struct Progress {
    calls: Mutex<HashMap<ProgressToken, mpsc::Sender<String>>>,
}

impl Progress {
    /// What a call is told, until the guard is dropped.
    pub(super) fn watch(self: &Arc<Self>, token: ProgressToken) -> (Watch, mpsc::Receiver<String>) {
        let (tell, told) = mpsc::channel(WAITING);
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        calls.insert(token.clone(), tell);
        let watch = Watch {
            progress: self.clone(),
            token,
        };
        (watch, told)
    }

    fn tell(&self, params: &ProgressNotificationParam) {
        let calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(call) = calls.get(&params.progress_token) {
            // It is a preview: what doesn't fit is left out.
            let _ = call.try_send(shown(params));
        }
    }
}

fn shown(params: &ProgressNotificationParam) -> String {
    let mut text = match params.total {
        Some(total) => format!("{} of {total}", params.progress),
        None => params.progress.to_string(),
    };
    if let Some(message) = &params.message {
        text.push_str(": ");
        text.push_str(message);
    }
    text
}

/// Ends the watch of a call's progress.
pub(super) struct Watch {
    progress: Arc<Progress>,
    token: ProgressToken,
}

impl Drop for Watch {
    fn drop(&mut self) {
        let calls = &self.progress.calls;
        let mut calls = calls.lock().unwrap_or_else(PoisonError::into_inner);
        calls.remove(&self.token);
    }
}

/// The client of one run.
pub(super) struct Face {
    product: (String, String),
    root: String,
    changed: Arc<Notify>,
    progress: Arc<Progress>,
}

impl Face {
    pub(super) fn new(place: &Place) -> Self {
        Face {
            product: place.product.clone(),
            root: file_uri(&place.root),
            changed: Arc::default(),
            progress: Arc::default(),
        }
    }

    /// Told when the server's tools are others. One word is kept.
    pub(super) fn changed(&self) -> Arc<Notify> {
        self.changed.clone()
    }

    pub(super) fn progress(&self) -> Arc<Progress> {
        self.progress.clone()
    }
}

impl ClientHandler for Face {
    fn get_info(&self) -> ClientConfig {
        let (name, version) = self.product.clone();
        let mut capabilities = ClientCapabilities::default();
        capabilities.roots = Some(RootsCapabilities::default());
        ClientConfig::new(capabilities, Implementation::new(name, version))
    }

    async fn list_roots(
        &self,
        _: RequestContext<RoleClient>,
    ) -> Result<ListRootsResult, ErrorData> {
        Ok(ListRootsResult::new(vec![Root::new(self.root.clone())]))
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        self.progress.tell(&params);
    }
}

fn file_uri(path: &Path) -> String {
    let mut uri = "file://".to_owned();
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'.' | b'_' | b'~' => {
                uri.push(char::from(*byte));
            }
            other => uri.push_str(&format!("%{other:02X}")),
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_spelt_as_an_address() {
        assert_eq!(
            file_uri(Path::new("/a b/ü#.d")),
            "file:///a%20b/%C3%BC%23.d"
        );
    }
}
