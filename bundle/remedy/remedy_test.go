package remedy

import (
	"os/exec"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A shell reads the flags of a command as the user gave them, whatever is in them.
func TestCommandsAreQuoted(t *testing.T) {
	deployment := schema.GroupKind{Group: "apps", Kind: "Deployment"}
	if got, want := ForCluster("--context=prod", "--kubeconfig=/home/a/.kube/config").Delete(deployment, "shop", "web"), "kubectl delete deployment.apps web --namespace shop --context=prod --kubeconfig=/home/a/.kube/config"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := ForCluster().Describe(schema.GroupKind{Kind: "Namespace"}, "", "shop"), "kubectl describe namespace shop"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := ForCluster().Split("a/b", "c/d", schema.GroupKind{Kind: "Namespace"}, "", "shop"), "brine inventory split a/b --to c/d --members Namespace/shop"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := ForCluster("--context=prod").Split("a/b", "c/d", deployment, "shop", "web"), "brine inventory split a/b --to c/d --members Deployment.apps/shop/web --context=prod"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	flags := []string{"--kubeconfig=my clusters/it's.yaml", "--context=admin@$(hostname);a|b", `--user=\ü"`}
	out, err := exec.Command("sh", "-c", "printf '%s\n'"+string(ForCluster(flags...))).Output()
	if got := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n"); err != nil || strings.Join(got, "\n") != strings.Join(flags, "\n") {
		t.Errorf("a shell reads %q, %v; want %q", got, err, flags)
	}
}
