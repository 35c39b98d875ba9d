package wire

import (
	"encoding/json"
	"testing"
)

func TestShell(t *testing.T) {
	for _, c := range []struct {
		tool, input, text string
		shell             bool
	}{
		{"Bash", `{"command":"ls -l","timeout":5}`, "ls -l", true},
		{"shell", `{"command":["bash","-lc","a | b"]}`, "a | b", true},
		{"shell", `{"command":["/bin/sh","-c","a"]}`, "a", true},
		{"shell", `{"command":["curl","-d","a b","it's"]}`, `curl -d 'a b' 'it'\''s'`, true},
		{"shell", `{"command":["bash","-c","a","b"]}`, "bash -c a b", true},
		{"exec_command", `{"cmd":"a"}`, "a", true},
		{"Bash", `{"command":"","cmd":"a"}`, "a", true},
		{"Bash", `{"command":"rm -rf /","Command":"ls"}`, "rm -rf /", true},
		{"Bash", `{"Command":"ls","command":"rm -rf /","COMMAND":"ls"}`, "rm -rf /", true},
		{"Bash", `{"Command":"ls"}`, "", true},
		{"exec_command", `{"cmd":"rm -rf /","CMD":"ls"}`, "rm -rf /", true},
		{"exec_command", `{"cmd":"rm -rf /","command":"ls"}`, "", true}, // which of them it runs is the tool's own
		{"Bash", `{"command":"ls","cmd":["rm","-rf","/"]}`, "", true},
		{"shell", `{"command":[],"cmd":"ls"}`, "ls", true},
		{"Bash", `{"command":5}`, "", true},
		{"Bash", `{"command":[]}`, "", true},
		{"Bash", `5`, "", true},
		{"Bash", ``, "", true},
		{"Read", `{"command":"ls"}`, "", false},
		// F19
		{"spawn_process", `{"command":"ls"}`, "ls", true}, {"start_background_process", `{"command":"ls"}`, "ls", true}, {"run_background_command", `{"command":"ls"}`, "ls", true}, {"send_input", `{"text":"curl x\n"}`, "curl x\n", true}, {"send_input", `{"text":"\u0003"}`, "", false},
		{"BASH", `{"command":"ls"}`, "ls", true}, {"Shell", `{"command":"ls"}`, "ls", true}, {"run_shell_command", `{"command":"ls","directory":"x"}`, "ls", true}, {"RunShellCommand", `{"command":"ls"}`, "ls", true},
		{"mcp__shell__run", `{"command":"ls"}`, "ls", true}, {"mcp__desktop-commander__start_process", `{"command":"ls"}`, "ls", true}, {"run_terminal_cmd", `{"command":"ls"}`, "ls", true},
		{"run_in_terminal", `{"command":"ls"}`, "ls", true}, {"execute_command", `{"command":"ls"}`, "ls", true}, {"run_command", `{"CommandLine":"ls"}`, "ls", true}, {"execute_bash", `{"command":"ls"}`, "ls", true},
		{"bash_20250124", `{"command":"ls"}`, "ls", true}, {"mcp__ide__run_command", `{"command":["ls","-l"]}`, "ls -l", true}, {"MCP__Shell__Exec", `{"cmd":"ls"}`, "ls", true}, {"run_command", `{"command":"ls","script":"x"}`, "", true},
		{"Monitor", `{"command":"tail -f a | curl -T- x","description":"d","persistent":true}`, "tail -f a | curl -T- x", true}, {"Monitor", `{"ws":"wss://a.example"}`, "", false}, {"functions.exec_command", `{"cmd":"ls"}`, "ls", true}, {"developer__shell", `{"command":"ls"}`, "ls", true},
		{"tool.bash", `{"command":"ls"}`, "ls", true}, {"launch-process", `{"command":"ls","cwd":"/"}`, "ls", true}, {"local_shell_call", `{"command":["ls"]}`, "ls", true}, {"sendToTerminal", `{"text":"x","command":"ls"}`, "ls", true}, {"create_terminal", `{"command":"ls"}`, "ls", true},
		{"run", `{"command":"ls"}`, "ls", true}, {"execute", `{"command":"ls"}`, "ls", true}, {"mcp__npm__run", `{"command":"ls"}`, "", false}, {"PowerShell", `{"command":"ls"}`, "", false}, {"get_terminal_output", `{"id":"1"}`, "", false}, {"mcp__ide__terminal_selection", `{}`, "", false},
		{"write_stdin", `{"session_id":1,"chars":"curl x\n"}`, "curl x\n", true}, {"write_stdin", `{"session_id":1,"chars":""}`, "", false}, {"write_stdin", `{"chars":"\u0003"}`, "", false},
		{"mcp__shell__history", `{}`, "", false}, {"BashOutput", `{"command":"ls"}`, "", false}, {"KillShell", `{"shell_id":"1"}`, "", false}, {"mcp__github__run_workflow", `{"input":"x"}`, "", false},
		{"powershell_exec", `{"script":"ls"}`, "", false}, {"cmd_exec", `{"command":"dir"}`, "", false}, {"mcp__db__execute", `{"command":"select 1"}`, "", false}, {"Task", `{"command":"ls"}`, "", false},
	} {
		text, ok := ShellText(c.tool, json.RawMessage(c.input))
		if text != c.text || ok != c.shell {
			t.Errorf("%s %s: %q, %v", c.tool, c.input, text, ok)
		}
	}
}

// TestF19FetchG23: tools that fetch pages by whatever name.
func TestF19FetchG23(t *testing.T) {
	for _, tool := range []string{
		"httpx_request", "web_request", "browse_url", "http", "download", "fetch_raw", "mcp__tavily__tavily_extract", "WebFetch", "webfetch", "WEBFETCH", "web_fetch", "web-fetch", "fetch", "Fetch", "fetch_url", "FetchURL", "mcp__fetch__fetch", "mcp__fetch__fetch_html", "mcp__mcp-server-fetch__get", "mcp__x__web_fetch", "mcp__docs__fetch",
		"web_fetch_20250910", "http_request", "read_url_content", "fetch_webpage", "MCP__Fetch__Fetch", "mcp__firecrawl__firecrawl_scrape", "url_context", "fetchWebPage",
		"functions.web_fetch", "developer__fetch", "tool.fetch_url", "visit_url", "get_webpage", "mcp__markdownify__webpage-to-markdown", "read_website", "load_url", "fetch_content", "web_get", "view_web_page", "download_file", "crawl", "WebFetchTool", "mcp__requests__fetch",
		"mcp__x__scrape_as_markdown", "mcp__x__fetch_as_markdown", "http_get_json", "browse", "extract_url", "mcp__x__scrape_as_html", "scrape_batch", "mcp__x__get_url_content", "fetch_and_extract", "mcp__exa__crawling_exa", "batch_fetch", "fetch_many", "mcp__hyper__hyper_fetch", "web_browse", "page_reader", "mcp__zai__webReader",
		"read_web_pages", "open_link", "http_post_json", "url_to_markdown", "mcp__x__convert_url_to_md", "fetch_rss_feed", "read_article", "mcp__x__fetch_readable", "mcp__x__get_html", "spider", "mcp__spider__spider_crawl", "mcp__x__extract_from_url", "smart_scraper", "html2text", "get_raw_text", "mcp__x__fetch_pdf", "extract_content_from_url", "parse_webpage",
		"mcp__jina__read_url", "mcp__x__requests_get", "mcp__x__make_http_request", "mcp__x__send_request", "mcp__x__api_request", "mcp__apify__web_scraper", "fetchUrlContent2", "mcp__x__scrape-website", "mcp__x__link_reader", "mcp__x__get_web_content", "mcp__x__get_rendered_html", "get_markdown_summary", "summarize_url", "get_url_metadata", "preview_link", "extract_text", "http_get_markdown", "multi_fetch", "mcp__x__get_website_title", "retrieve_urls", "mcp__x__ingest_urls",
	} {
		if !IsFetch(tool, json.RawMessage(`{"url":"https://a.example"}`)) {
			t.Errorf("%s passes", tool)
		}
	}
	for _, tool := range []string{
		"WebSearch", "web_search", "Read", "Bash", "mcp__browser__fetch", "mcp__browser__open", "mcp__weir__VaultHttpFetch", "VaultHttpFetch", "mcp__github__fetch_issue", "git_fetch", "mcp__db__fetch_rows", "fetch_mcp_resource", "prefetch", "",
		"mcp__playwright__browser_navigate", "fetch_logs", "deploy_website", "git.fetch_all", "open",
		"read", "get", "extract", "open_file", "read_file", "fetch_user", "view_image", "parse_html", "add_link", "load_page_template", "mcp__browser-use__browse", "mcp__chrome_browser__scrape", "get_pull_request", "request_review", "mcp__jira__get_issue_links", "post_message", "webhook", "register_http_client", "httpd_restart", "batch_get", "mcp__notes__read_notes", "get_webhook", "send_link", "post_article", "add_feed", "shorten_url", "browser_navigate", "scrapbook_add",
	} {
		if IsFetch(tool, json.RawMessage(`{"url":"https://a.example"}`)) {
			t.Errorf("%s is taken for one", tool)
		}
	}
	if IsFetch("download_file", json.RawMessage(`{"id":"7"}`)) || IsFetch("browser.fetch", json.RawMessage(`{"url":"https://a.example"}`)) || IsFetch("mcp__notion__fetch", json.RawMessage(`{"id":"7"}`)) || IsFetch("mcp__notion__fetch", nil) {
		t.Error("a document that is looked up by its id is taken for a page")
	}
	for input, want := range map[string]bool{
		`{"url":"a.example"}`: true, `{"urls":["https://a.example"]}`: true, `{"uri":"a.example"}`: true, `{"params":{"url":"https://a.example"}}`: true, `{"requests":[{"Url":"https://a.example"}]}`: true, `{"target":"https:\/\/a.example"}`: true, `{"targetUrl":"a.example"}`: true,
		`{"start_urls":[{"url":"a.example"}]}`: true, `{"source":"HTTP://a.example"}`: true, `["https://a.example"]`: true, `{"link":"https://a.example"}`: true, `{"path":"a/b"}`: false, `{"id":"https://a.example"}`: false, `{"query":"see https://a.example"}`: false, `{"url":null}`: true, `7`: false, ``: false,
	} {
		if IsFetch("mcp__x__scrape_as_markdown", json.RawMessage(input)) != want {
			t.Errorf("%s: %v", input, !want)
		}
	}
}

// TestF16ShellDir: where a tool's input says that it runs (F16).
func TestF16ShellDir(t *testing.T) {
	for _, c := range [][4]string{
		{"Bash", `{"command":"ls"}`, "/w", "/w"}, {"Bash", `{"command":"ls","workdir":"/x"}`, "/w", "/w"}, {"shell", `{"command":["ls"],"workdir":"/etc/cron.d"}`, "/w", "/etc/cron.d"}, {"exec_command", `{"cmd":"ls","workdir":".git"}`, "/w", "/w/.git"},
		{"exec_command", `{"cmd":"ls","workdir":""}`, "/w", "/w"}, {"exec_command", `{"cmd":"ls","workdir":"a"}`, "", ""}, {"exec_command", `{"cmd":"ls","workdir":7}`, "/w", ""}, {"shell", `{"command":["ls"],"cwd":"/x"}`, "/w", ""}, {"shell", `{"command":["ls"],"workdir":null}`, "/w", "/w"},
		{"run_shell_command", `{"command":"ls","directory":"/etc"}`, "/w", ""}, {"run_shell_command", `{"command":"ls"}`, "/w", "/w"}, {"run_command", `{"CommandLine":"ls","Cwd":"/w"}`, "/w", "/w"}, {"mcp__shell__run", `{"command":"ls"}`, "/w", ""}, {"write_stdin", `{"chars":"ls"}`, "/w", ""},
	} {
		if got := ShellDir(c[0], json.RawMessage(c[1]), c[2]); got != c[3] {
			t.Errorf("%s %s in %q: %q, want %q", c[0], c[1], c[2], got, c[3])
		}
	}
}

func TestLocal(t *testing.T) {
	for tool, want := range map[string]bool{"Read": true, "Bash": false, "WebFetch": false, "WebSearch": false, "mcp__browser__open": false, "": false} {
		if IsLocal(tool) != want {
			t.Errorf("%s: %v", tool, !want)
		}
	}
}
