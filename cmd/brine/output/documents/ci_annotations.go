package documents

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"brine/bundle"
	"brine/bundle/plan"
	"brine/bundle/report"
	"brine/cmd/brine/output/wording"
)

// github is what went wrong, what is dangerous and all warnings as commands of GitHub's
// workflows, which annotate the lines of the bundle.
func github(r *report.Result) string {
	var b strings.Builder
	value := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	property := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
	for _, n := range annotations(r) {
		place := ""
		if n.at.File != "" && n.at.File != "-" {
			place = fmt.Sprintf("file=%s,line=%d,", property.Replace(n.at.File), max(n.at.Line, 1))
		}
		fmt.Fprintf(&b, "::%s %stitle=%s::%s\n", n.level(), place, property.Replace(wording.Line(n.title)), value.Replace(n.text))
	}
	_, ended := wording.TitleOf(r)
	fmt.Fprintf(&b, "::notice title=brine::%s\n", value.Replace(ended))
	return b.String()
}

// gitlab is the same as a Code Quality report, which GitLab shows in the changes of a
// merge request.
func gitlab(r *report.Result) string {
	type place struct {
		Path  string         `json:"path"`
		Lines map[string]int `json:"lines"`
	}
	type issue struct {
		Description string `json:"description"`
		Check       string `json:"check_name"`
		Fingerprint string `json:"fingerprint"`
		Severity    string `json:"severity"`
		Location    place  `json:"location"`
	}
	issues := []issue{}
	for _, n := range annotations(r) {
		at := place{cmp.Or(n.at.File, "bundle"), map[string]int{"begin": max(n.at.Line, 1)}}
		issues = append(issues, issue{wording.Line(n.title + ": " + n.text), n.check, n.fingerprint(), n.severity, at})
	}
	var b strings.Builder
	_ = wording.JSON(&b, issues) // to memory
	return b.String()
}

// annotation is something that belongs to a line of the bundle.
type annotation struct {
	at                           bundle.Source
	check, severity, title, text string
}

func (n annotation) level() string {
	if n.severity == "blocker" || n.severity == "critical" {
		return "error"
	}
	return "warning"
}

// annotations are all of a result, the worst first.
func annotations(r *report.Result) []annotation {
	var all []annotation
	at := map[bundle.ID]bundle.Source{}
	var attached []*report.ObjectResult
	for _, o := range r.Objects {
		at[o.ID()] = o.Source
		why := cmp.Or(o.Error, o.Reason, "no reason is known")
		switch {
		case o.Action == plan.Failed:
			all = append(all, annotation{o.Source, "failed", "blocker", bundle.Name(o.ID()), why})
		case o.Ready == report.StateFailed, o.Ready == report.StateNotReady:
			all = append(all, annotation{o.Source, "not-ready", "critical", bundle.Name(o.ID()), strings.Join(append([]string{why}, o.Why...), "\n")})
		default:
			continue
		}
		attached = append(attached, o)
	}
	for _, e := range wording.ErrorsOfNoObject(r.Errors, attached) {
		source, text := placeIn(e)
		all = append(all, annotation{source, "error", "blocker", "brine", text})
	}
	if r.Review != nil {
		for _, risk := range r.Review.Risks {
			for _, o := range risk.Objects {
				all = append(all, annotation{at[o.ID()], string(risk.Type), "major", risk.Type.Title(), wording.ObjectName(o) + ": " + risk.Text})
			}
		}
	}
	for _, w := range r.Warnings {
		source, text := placeIn(w)
		all = append(all, annotation{source, "warning", "minor", "brine", text})
	}
	return all
}

// places finds the file and the line at the beginning of a message.
var places = bundle.Pattern(`^([^\s:]+):(\d{1,7})(?: \([^)]*\))?: ((?s:.*))$`)

// fingerprint is the same for the same issue in every run.
func (n annotation) fingerprint() string {
	sum := sha256.Sum256([]byte(n.check + "\x00" + n.title + "\x00" + n.text))
	return hex.EncodeToString(sum[:16])
}

// placeIn is the place that a message begins with: "a.yaml:7: text".
func placeIn(message string) (bundle.Source, string) {
	m := places().FindStringSubmatch(message)
	if m == nil {
		return bundle.Source{}, message
	}
	line, _ := strconv.Atoi(m[2]) // seven digits at most
	return bundle.Source{File: m[1], Line: line}, m[3]
}
