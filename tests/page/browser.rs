//! A browser without a window, driven through chromedriver (W3C WebDriver over HTTP).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Keys as WebDriver writes them.
pub const ENTER: &str = "\u{e007}";
pub const ESCAPE: &str = "\u{e00c}";
pub const RIGHT: &str = "\u{e014}";
pub const LEFT: &str = "\u{e012}";
pub const HOME: &str = "\u{e011}";
pub const END: &str = "\u{e010}";

/// A session with one window. It ends, with its browser, when this is dropped.
pub struct Browser {
    driver: Child,
    agent: ureq::Agent,
    /// The session's URL, once there is one.
    session: String,
}

impl Browser {
    /// Starts Chromium with a profile in `directory`; `None`, and a word about it, when it is not
    /// installed.
    pub fn start(directory: &Path) -> Option<Self> {
        for (program, package) in [("chromium", "chromium"), ("chromedriver", "chromium-driver")] {
            let found = Command::new(program).arg("--version").output();
            if !found.is_ok_and(|output| output.status.success()) {
                eprintln!(
                    "SKIPPED: `{program}` is not here; xtask/install-deps.sh installs {package}"
                );
                return None;
            }
        }
        let mut driver = Command::new("chromedriver")
            .arg("--port=0")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("chromedriver starts");
        let mut lines = BufReader::new(driver.stdout.take().expect("it has an output")).lines();
        let port = lines
            .by_ref()
            .map_while(Result::ok)
            .find_map(|line| {
                let (_, port) = line.split_once("successfully on port ")?;
                port.trim_end_matches('.').parse::<u16>().ok()
            })
            .expect("chromedriver says at which port it listens");
        // Its output must stay open.
        std::thread::spawn(move || lines.for_each(drop));
        let config = ureq::Agent::config_builder()
            .timeout_global(Some(Duration::from_secs(120)))
            .http_status_as_error(false);
        let mut browser = Self {
            driver,
            agent: config.build().into(),
            session: format!("http://127.0.0.1:{port}"),
        };
        let arguments = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--window-size=1440,900",
            &format!("--user-data-dir={}", directory.join("profile").display()),
        ];
        let answer = browser.post(
            "/session",
            &json!({"capabilities": {"alwaysMatch": {
                "goog:chromeOptions": {"args": arguments},
                "goog:loggingPrefs": {"browser": "ALL"},
            }}}),
        );
        let id = answer["sessionId"].as_str().expect("a session");
        browser.session = format!("{}/session/{id}", browser.session);
        Some(browser)
    }

    fn post(&self, path: &str, body: &Value) -> Value {
        let url = format!("{}{path}", self.session);
        let request = self.agent.post(&url).header("content-type", "application/json");
        let mut response = request.send(body.to_string()).expect("chromedriver answers");
        let text = response.body_mut().with_config().limit(1 << 28).read_to_string();
        let answer: Value =
            serde_json::from_str(&text.expect("the answer is text")).expect("the answer is JSON");
        assert!(answer["value"]["error"].is_null(), "{path}: {}", answer["value"]);
        answer["value"].clone()
    }

    pub fn open(&self, page: &Path) {
        self.post("/url", &json!({"url": format!("file://{}", page.display())}));
    }

    pub fn resize(&self, width: u32, height: u32) {
        self.post("/window/rect", &json!({"width": width, "height": height}));
    }

    /// Whether the system's colours are dark.
    pub fn prefer_dark(&self, dark: bool) {
        let value = if dark { "dark" } else { "light" };
        let features = json!([{"name": "prefers-color-scheme", "value": value}]);
        let command =
            json!({"cmd": "Emulation.setEmulatedMedia", "params": {"features": features}});
        self.post("/goog/cdp/execute", &command);
    }

    /// What a function body returns.
    pub fn run(&self, script: &str) -> Value {
        self.post("/execute/sync", &json!({"script": script, "args": []}))
    }

    pub fn text(&self, selector: &str) -> String {
        let script = format!("return document.querySelector({selector:?}).textContent");
        self.run(&script).as_str().expect("text").to_owned()
    }

    /// A real click in the middle of the first such element, which is scrolled there before.
    pub fn click(&self, selector: &str) {
        let scroll = "scrollIntoView({block: 'center', behavior: 'instant'})";
        self.run(&format!("document.querySelector({selector:?}).{scroll}"));
        let element = self.element(selector);
        self.post(&format!("/element/{element}/click"), &json!({}));
    }

    /// Moves the pointer there.
    pub fn hover(&self, selector: &str) {
        let element = json!({"element-6066-11e4-a52e-4f735466cecf": self.element(selector)});
        let movement =
            json!({"type": "pointerMove", "duration": 0, "x": 0, "y": 0, "origin": element});
        self.act(&json!({"type": "pointer", "id": "mouse", "actions": [movement]}));
    }

    fn element(&self, selector: &str) -> String {
        let found = self.post("/element", &json!({"using": "css selector", "value": selector}));
        let id = found.as_object().and_then(|found| found.values().next());
        id.and_then(Value::as_str).expect("an element").to_owned()
    }

    /// Presses keys one after the other, wherever the focus is.
    pub fn press(&self, keys: &str) {
        let strokes: Vec<Value> = keys
            .chars()
            .flat_map(|key| ["keyDown", "keyUp"].map(|kind| json!({"type": kind, "value": key})))
            .collect();
        self.act(&json!({"type": "key", "id": "keyboard", "actions": strokes}));
    }

    fn act(&self, device: &Value) {
        self.post("/actions", &json!({"actions": [device]}));
    }

    /// What the page complained of since the last call, violations of its policy included.
    pub fn complaints(&self) -> Vec<String> {
        let entries = self.post("/se/log", &json!({"type": "browser"}));
        let entries = entries.as_array().cloned().unwrap_or_default();
        let bad = entries.iter().filter(|entry| entry["level"] != "INFO");
        bad.map(|entry| entry["message"].to_string()).collect()
    }

    /// Keeps a picture where `SYMBIOSIS_SCREENSHOTS` says, for people to look at.
    pub fn picture(&self, name: &str) {
        let Some(directory) = std::env::var_os("SYMBIOSIS_SCREENSHOTS") else { return };
        let url = format!("{}/screenshot", self.session);
        let mut response = self.agent.get(&url).call().expect("chromedriver answers");
        let text = response.body_mut().with_config().limit(1 << 28).read_to_string();
        let answer: Value =
            serde_json::from_str(&text.expect("the answer is text")).expect("the answer is JSON");
        let picture = STANDARD.decode(answer["value"].as_str().expect("a picture"));
        let path = Path::new(&directory).join(format!("{name}.png"));
        fs::write(path, picture.expect("base64")).expect("the picture can be written");
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Ends the browser too; chromedriver alone would leave it behind.
        let _ = self.agent.delete(&self.session).call();
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}
