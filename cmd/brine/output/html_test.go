package output

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"brine/bundle/report"
	"brine/cmd/brine/output/outputtest"
	"brine/cmd/brine/output/wording"
)

func htmlOf(t testing.TB, r *report.Result) string {
	t.Helper()
	var out, err bytes.Buffer
	p := New(wording.Options{Format: "html", Out: &out, Err: &err, Now: func() time.Time { return time.Unix(0, 0) }})
	p.Event(report.Event{Payload: report.Finished{Result: r}})
	if e := p.Close(); e != nil {
		t.Fatal(e)
	}
	return out.String()
}

// unpacked are the parts of a page that its script unpacks.
func unpacked(t testing.TB, page string) string {
	t.Helper()
	_, rest, found := strings.Cut(page, `id="bodies">`)
	if !found {
		t.Fatal("nothing is packed")
	}
	text, _, _ := strings.Cut(rest, "<")
	z, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, strings.NewReader(text)))
	if err != nil {
		t.Fatal(err)
	}
	var parts []string
	if err := json.NewDecoder(z).Decode(&parts); err != nil {
		t.Fatal(err)
	}
	return strings.Join(parts, "\n")
}

func TestHTML(t *testing.T) {
	page := htmlOf(t, outputtest.LargePreview())
	if strings.Contains(page, "line 399 of") {
		t.Error("a long diff is in the page as it is")
	}
	page += unpacked(t, page)
	if len(page) > 2<<20 {
		t.Errorf("%d bytes for 300 objects", len(page))
	}
	for _, bad := range []string{"<img", "alert(1)</script>", "<script>alert", "http://", "https://", "src=", "ZgotmplZ", "@import", "url("} {
		text := page
		if bad == "src=" {
			text = strings.ReplaceAll(text, "img src=x", "")
		}
		if strings.Contains(text, bad) {
			t.Errorf("%q is in the page", bad)
		}
	}
	for _, good := range []string{
		"Preview of shop/all", "patch deployments.apps in namespace shop", "bad.yaml:3: spec.x: unknown", "<td class=\"mono\">spec.replicas</td>",
		`<span class="d">-&lt;/pre&gt;`, "not verified: &lt;b&gt;why", "all.yaml:2", "&lt;img", "<noscript>",
	} {
		if !strings.Contains(page, good) {
			t.Errorf("%q is not in the page", good)
		}
	}
}

func TestHTMLOfARefusedRun(t *testing.T) {
	page := htmlOf(t, &report.Result{Command: "apply", DryRun: "none", Errors: []string{"no bundle"}, ExitCode: report.ExitBadBundle})
	if !strings.Contains(page, "no bundle") || strings.Contains(page, "Who needs whom") {
		t.Errorf("got\n%s", page)
	}
}

// chromium finds a browser, or installs Debian's.
func chromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if os.Geteuid() == 0 {
		install := exec.Command("sh", "-c", "apt-get update && apt-get install -y --no-install-recommends chromium")
		install.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		if out, err := install.CombinedOutput(); err != nil {
			t.Logf("install chromium: %v\n%s", err, out)
		}
		if path, err := exec.LookPath("chromium"); err == nil {
			return path
		}
	}
	if os.Getenv("BRINE_TEST_REQUIRED") == "1" {
		t.Fatal("no chromium, and BRINE_TEST_REQUIRED=1")
	}
	t.Skip("SKIPPED, THE PAGE WAS NOT TRIED: no chromium")
	return ""
}

// The script does what a user would, and then opens an address that says what it saw.
const user = `<script>
(async function () {
  var seen = {};
  var shown = function () { return Array.from(document.querySelectorAll("details.o")).filter(function (o) { return !o.hidden && o.offsetParent !== null; }).length; };
  var set = function (id, v) { var e = document.getElementById(id); e.value = v; e.dispatchEvent(new Event(id === "q" ? "input" : "change")); };
  var key = function (k) { (document.activeElement || document.body).dispatchEvent(new KeyboardEvent("keydown", { key: k, bubbles: true, cancelable: true })); };
  var pause = function () { return new Promise(function (r) { setTimeout(r, 10); }); };
  while (document.getElementById("bodies")) { await pause(); }
  seen.all = shown();
  set("action", "pruned"); seen.pruned = shown(); seen.said = document.getElementById("shown").textContent;
  set("ns", "ns-2"); seen.prunedIn2 = shown();
  set("kind", "ConfigMap"); seen.prunedConfigMapsIn2 = shown();
  key("Escape"); seen.cleared = shown();
  set("ns", "-"); seen.clusterScoped = shown();
  document.getElementById("clear").click();
  set("by", "not verified"); seen.unverified = shown(); key("Escape");
  set("q", "app-123"); seen.search = shown();
  set("q", "zzz"); seen.none = shown(); seen.noneSaid = !document.getElementById("none").hidden; key("Escape");
  document.querySelector(".tile[data-action=created]").click(); seen.tile = shown();
  seen.pressed = document.querySelectorAll(".tile[aria-pressed=true]").length; key("Escape");
  document.activeElement.blur();
  ["j", "j"].forEach(key); seen.second = document.activeElement.closest("details") === document.querySelectorAll("details.o")[1];
  key("k"); seen.first = document.activeElement.closest("details") === document.querySelectorAll("details.o")[0];
  key("/"); seen.slash = document.activeElement.id === "q"; document.activeElement.blur();
  var o = document.querySelector("details.o[data-action=created]");
  o.querySelector("summary").click();
  var there = async function (what) { while (!document.querySelector(what)) { await pause(); } };
  await there("#" + o.id + " pre");
  seen.unpacked = o.querySelector("pre").textContent.split("\n").length;
  set("q", "378ecea7"); await there("#none"); seen.searchPacked = shown(); key("Escape");
  document.activeElement.blur();
  key("g"); await there("#n299");
  document.getElementById("n299").dispatchEvent(new MouseEvent("click", { bubbles: true }));
  seen.followed = document.querySelectorAll(".n.on").length;
  document.querySelector("#chosen a").click();
  seen.opened = document.getElementById("o299").open;
  seen.wide = document.documentElement.scrollWidth <= window.innerWidth;
  return seen;
})().catch(function (e) { return { failed: String(e.stack) }; }).then(function (seen) { location.href = "/seen?" + encodeURIComponent(JSON.stringify(seen)); });
</script>`

// inBrowser shows the page in a window of that size until its script says what it saw.
// The clock is the real one: Chromium's virtual time runs ahead of what the page unpacks
// in the background.
func inBrowser(t *testing.T, browser, size, page string) map[string]any {
	t.Helper()
	asked := make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/":
			_, _ = io.WriteString(w, page)
		case "/seen":
			seen, _ := url.QueryUnescape(r.URL.RawQuery)
			asked <- seen
		default:
			http.NotFound(w, r)
		}
	}))
	defer server.Close()
	home, err := os.MkdirTemp("", "brine-chromium-") //nolint:usetesting // the browser's children may still write to it: TempDir would fail
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(home) }()
	ctx, stop := context.WithTimeout(t.Context(), 3*time.Minute)
	defer stop()
	cmd := exec.CommandContext(ctx, browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
		"--user-data-dir="+home, "--remote-debugging-port=0", "--window-size="+size, server.URL)
	var said bytes.Buffer
	cmd.Stderr = &said
	cmd.Env = append(os.Environ(), "TMPDIR="+home)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // it ends its children
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case body := <-asked:
		stop()
		<-ended
		var seen map[string]any
		if err := json.Unmarshal([]byte(body), &seen); err != nil {
			t.Fatal(err)
		}
		if seen["failed"] != nil {
			t.Fatal(seen["failed"])
		}
		return seen
	case err := <-ended:
		t.Fatalf("the page's script did not get through: %v\n%s", err, said.String())
		return nil
	}
}

func TestHTMLInABrowser(t *testing.T) {
	browser := chromium(t)
	page := htmlOf(t, outputtest.LargePreview()) + user
	for _, size := range []string{"1280,900", "390,800"} {
		t.Run(size, func(t *testing.T) {
			seen := inBrowser(t, browser, size, page)
			in2, maps2 := 0, 0
			for i := range 300 {
				if i%5 == 2 && i%7 == 2 && i%10 != 0 {
					in2++
					if i%3 == 0 {
						maps2++
					}
				}
			}
			for what, want := range map[string]any{
				"all": 300.0, "pruned": 60.0, "said": "60 of 300 shown", "prunedIn2": float64(in2), "prunedConfigMapsIn2": float64(maps2), "cleared": 300.0,
				"clusterScoped": 30.0, "unverified": 1.0, "search": 1.0, "none": 0.0, "noneSaid": true, "tile": 60.0, "pressed": 1.0,
				"second": true, "first": true, "slash": true, "unpacked": 400.0, "searchPacked": 1.0, "followed": 7.0, "opened": true, "wide": true,
			} {
				if seen[what] != want {
					t.Errorf("%s: %v, want %v", what, seen[what], want)
				}
			}
		})
	}
}
