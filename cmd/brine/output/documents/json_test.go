package documents

import (
	"bytes"
	"fmt"
	"testing"

	"brine/bundle/plan"
	"brine/bundle/report"
	"brine/cmd/brine/output/html"
	"brine/cmd/brine/output/outputtest"
	"brine/cmd/brine/output/wording"
)

// The Result is written object by object, and is the same text as if it were not.
func TestResultAsJSON(t *testing.T) {
	object := func(i int) *report.ObjectResult {
		return &report.ObjectResult{Action: plan.Created, Kind: "ConfigMap", Namespace: "shop", Name: fmt.Sprint("object-", i), Reason: "a <b> & \u202e\n  \"objects\": []"}
	}
	for _, n := range []int{0, 1, 3} {
		r := &report.Result{Errors: []string{"\n  \"objects\": []"}, Outside: []*report.ObjectResult{object(9)}}
		for i := range n {
			r.Objects = append(r.Objects, object(i))
		}
		var got, want bytes.Buffer
		if err := resultJSON(&got, wording.FillLists(r)); err != nil {
			t.Fatal(err)
		}
		if err := wording.JSON(&want, r); err != nil {
			t.Fatal(err)
		}
		if got.String() != want.String() {
			t.Errorf("%d objects:\n%s\nwant:\n%s", n, got.String(), want.String())
		}
		if err := resultJSON(outputtest.BrokenWriter{}, r); err == nil {
			t.Errorf("%d objects: a writer that fails is no error", n)
		}
	}
}

// pieces knows the largest of what is written to it, in bytes, and all.
type pieces struct{ largest, all int }

func (p *pieces) Write(text []byte) (int, error) {
	p.largest, p.all = max(p.largest, len(text)), p.all+len(text)
	return len(text), nil
}

// Neither the JSON nor the page of many objects is in memory as a whole.
func TestManyObjectsAreWrittenInPieces(t *testing.T) {
	r := &report.Result{}
	for i := range 5000 {
		r.Objects = append(r.Objects, &report.ObjectResult{
			Action: plan.Configured, Kind: "ConfigMap", Namespace: fmt.Sprint("shop-", i%50), Name: fmt.Sprint("object-", i),
			Diff: fmt.Sprintf("@@ -1 +1 @@\n-number: %d\n+number: %d\n", i, i+1),
		})
	}
	for name, write := range map[string]func(*pieces) error{
		"json": func(p *pieces) error { return resultJSON(p, wording.FillLists(r)) },
		"html": func(p *pieces) error { return html.Page(p, wording.FillLists(r), "now") },
	} {
		var p pieces
		if err := write(&p); err != nil || p.all < 1<<20 || p.largest > 1<<16 {
			t.Errorf("%s: %d bytes, at most %d at once: %v", name, p.all, p.largest, err)
		}
	}
	if err := html.Page(outputtest.BrokenWriter{}, r, "now"); err == nil {
		t.Error("html: a writer that fails is no error")
	}
}
