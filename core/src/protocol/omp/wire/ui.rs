//! What an agent asks of the host's screen. `select`, `confirm`, `input`, `editor` and `ask` wait for an answer.

use alloc::vec::Vec;

use super::member::{Kept, Num, objects, tagged};
use crate::json::{Lazy, Raw, Str};

objects! { without ["type", "id", "method"];
    /// One of several. A tool's approval is this too: `Allow tool: <name>`, `Approve` or `Deny`.
    Select {
        title "title": Lazy<'a>,
        options "options": Vec<Str<'a>>,
        option_details "optionDetails": Option<Vec<Raw<'a>>>,
        /// Milliseconds.
        timeout "timeout": Option<Num<'a>>,
    }
    /// Yes or no.
    Confirm {
        title "title": Lazy<'a>,
        message "message": Lazy<'a>,
        /// Milliseconds.
        timeout "timeout": Option<Num<'a>>,
    }
    /// A line of text.
    Input {
        title "title": Lazy<'a>,
        placeholder "placeholder": Option<Str<'a>>,
        /// Milliseconds.
        timeout "timeout": Option<Num<'a>>,
    }
    /// A longer text.
    Editor {
        title "title": Lazy<'a>,
        prefill "prefill": Option<Lazy<'a>>,
        prompt_style "promptStyle": Option<bool>,
    }
    /// A form of several questions, to hosts that asked for it. G3.
    AskForm {
        questions "questions": Vec<Kept<'a, AskQuestion<'a>>>,
        /// Milliseconds.
        timeout "timeout": Option<Num<'a>>,
    }
    /// Close the dialog that has this id.
    CancelDialog {
        target_id "targetId": Str<'a>,
    }
    /// Show a message.
    Notify {
        message "message": Lazy<'a>,
        /// `info`, `warning` or `error`.
        notify_type "notifyType": Option<Str<'a>>,
    }
    /// Show a status; none clears it.
    SetStatus {
        status_key "statusKey": Str<'a>,
        status_text "statusText": Option<Lazy<'a>>,
    }
    /// Show lines; none clears them.
    SetWidget {
        widget_key "widgetKey": Str<'a>,
        widget_lines "widgetLines": Option<Vec<Lazy<'a>>>,
        /// `aboveEditor` or `belowEditor`.
        widget_placement "widgetPlacement": Option<Str<'a>>,
    }
    /// Set the window's title.
    SetTitle {
        title "title": Lazy<'a>,
    }
    /// Set the text of the editor.
    SetEditorText {
        text "text": Lazy<'a>,
    }
    /// Open a page.
    OpenUrl {
        url "url": Str<'a>,
        launch_url "launchUrl": Option<Str<'a>>,
        instructions "instructions": Option<Lazy<'a>>,
    }
}

objects! { without [];
    /// A question of a form. G3.
    AskQuestion {
        id "id": Str<'a>,
        question "question": Lazy<'a>,
        header "header": Option<Str<'a>>,
        options "options": Vec<AskOption<'a>>,
        multi "multi": Option<bool>,
        /// An index into the options.
        recommended "recommended": Option<u64>,
    }
    /// A choice of a question. G3.
    AskOption {
        label "label": Str<'a>,
        description "description": Option<Lazy<'a>>,
        preview "preview": Option<Lazy<'a>>,
    }
}

tagged! {
    /// What is asked.
    UiMethod by "method" {
        Select(Select) = "select",
        Confirm(Confirm) = "confirm",
        Input(Input) = "input",
        Editor(Editor) = "editor",
        Ask(AskForm) = "ask",
        Cancel(CancelDialog) = "cancel",
        Notify(Notify) = "notify",
        SetStatus(SetStatus) = "setStatus",
        SetWidget(SetWidget) = "setWidget",
        SetTitle(SetTitle) = "setTitle",
        SetEditorText(SetEditorText) = "set_editor_text",
        OpenUrl(OpenUrl) = "open_url",
    }
}

impl UiMethod<'_> {
    /// Whether the host must answer.
    pub fn is_dialog(&self) -> bool {
        match self {
            UiMethod::Select(_)
            | UiMethod::Confirm(_)
            | UiMethod::Input(_)
            | UiMethod::Editor(_)
            | UiMethod::Ask(_) => true,
            UiMethod::Cancel(_)
            | UiMethod::Notify(_)
            | UiMethod::SetStatus(_)
            | UiMethod::SetWidget(_)
            | UiMethod::SetTitle(_)
            | UiMethod::SetEditorText(_)
            | UiMethod::OpenUrl(_)
            | UiMethod::Unknown(_) => false,
        }
    }
}
