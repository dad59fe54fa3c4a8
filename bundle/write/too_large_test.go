package write_test

import (
	"net/http"
	"strings"
	"testing"

	"brine/bundle/report"
	"brine/cmd/brine/clitest"
)

// What the server or etcd will never store is not sent again, and its size is
// reported.
func TestObjectThatIsTooLarge(t *testing.T) {
	for name, size := range map[string]int{"for etcd": 2 << 20, "for the API server": 4 << 20} {
		t.Run(name, func(t *testing.T) {
			s := clitest.New(t)
			p := s.Proxied()
			large := strings.Replace(clitest.Widget, "{size: 1}", "{filler: "+strings.Repeat("x", size)+"}", 1)
			got := s.Apply(clitest.Documents(clitest.Widgets, large), "--retry-timeout=10s").Want(t, report.ExitFailed)
			o := got.Object(t, "Widget", "one")
			if !strings.Contains(o.Error, "too large: it has ") || !strings.Contains(o.Error, "1572864") {
				t.Errorf("the error is %q", o.Error)
			}
			sent := 0
			for _, r := range p.Writes() {
				if r.Method == http.MethodPatch && strings.Contains(r.Path, "/widgets/one") {
					sent++
				}
			}
			if sent != 1 {
				t.Errorf("it was sent %d times", sent)
			}
		})
	}
}
