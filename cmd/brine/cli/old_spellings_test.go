package cli_test

import (
	"strings"
	"testing"

	"brine/cmd/brine/clitest"
)

// Flags that have another name now go on working for a minor version, in the environment,
// too, and say what they are called. The help does not show them.
func TestOldSpellingsOfFlags(t *testing.T) {
	const none = "nowhere.kubeconfig"
	for name, c := range map[string]struct {
		env  map[string]string
		args []string
		says string
	}{
		"split --only":         {nil, []string{"inventory", "split", "a/b", "--to", "a/c", "--only", "ConfigMap"}, "--only=ConfigMap: this is called --members now"},
		"BRINE_ONLY of split":  {map[string]string{"BRINE_ONLY": "ConfigMap"}, []string{"inventory", "split", "a/b", "--to", "a/c"}, "BRINE_ONLY=ConfigMap: this is called --members now"},
		"adopt":                {nil, []string{"inventory", "adopt", "ConfigMap/a/b", "--into", "a/c", "--take-over-from", "a/d"}, "--take-over-from=a/d: this is called --from-inventory now"},
		"manager of take over": {nil, []string{"preview", "-f", "-", "--name", "x", "--take-over-from", "kubectl"}, "--take-over-from=kubectl: a field manager is given with --take-over-managers now"},
	} {
		t.Run(name, func(t *testing.T) {
			for k, v := range c.env {
				t.Setenv(k, v)
			}
			clitest.Run(t, none, c.args...).Prints(t, c.says)
		})
	}
	for _, command := range []string{"split", "adopt"} {
		help := clitest.Run(t, none, "inventory", command, "--help").Want(t, 0).Stdout
		if strings.Contains(help, "--only") || strings.Contains(help, "--take-over-from") {
			t.Errorf("the help of %s shows an old spelling:\n%s", command, help)
		}
	}
}
