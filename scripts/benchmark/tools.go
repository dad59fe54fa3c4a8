package main

import (
	"path/filepath"
	"strconv"
	"strings"
)

// command is how a tool does a work; nil arguments: it does not do it.
type command struct {
	env   []string
	args  []string
	trace string // the file of brine's result
}

// tuned are the flags that raise a tool's own limits as far as it goes. The tool is measured
// with them as NAME-tuned, beside its defaults: nobody is slow by a default limit.
var tuned = map[string][]string{
	"kapp-tuned": {"--apply-concurrency=50", "--wait-concurrency=50", "--wait-check-interval=250ms"}, // as it is advised for large bundles
	"helm-tuned": {"--qps=1000", "--burst-limit=2000"},
	"nelm-tuned": {"--kube-qps-limit=1000", "--kube-burst-limit=2000", "--network-parallelism=64"},
}

// peers are the other tools; the last two have no command for the real platform's
// bundles, which are no charts and no templates.
var peers = []string{"kapply", "kapp", "kapp-tuned", "helm", "helm-tuned", "nelm", "nelm-tuned", "kluctl"}

// The works that are done to a generated bundle, in this order, each time on a
// control plane of its own.
const (
	preview   = "server preview, all new"
	first     = "first apply"
	unchanged = "re-apply, nothing changed"
	destroy   = "destroy, waited for"
)

var mixedWorks = []string{preview, first, unchanged, destroy}

// mixedCommand is the command line of a tool for a work on a generated bundle.
func (o options) mixedCommand(tool, work, kubeconfig string, b bundle, parallel int) command {
	if name, ok := strings.CutSuffix(tool, "-tuned"); ok {
		c := o.mixedCommand(name, work, kubeconfig, b, parallel)
		if len(c.args) > 0 {
			c.args = append(c.args, tuned[tool]...)
		}
		return c
	}
	switch tool {
	case "raw":
		self := o.self
		verb := map[string]string{preview: "", first: "apply", unchanged: "apply", destroy: "delete"}[work]
		if verb == "" {
			return command{}
		}
		return command{args: []string{self, "raw", verb, "--kubeconfig", kubeconfig, "--requests", b.requests, "--parallel", strconv.Itoa(parallel)}}
	case "brine":
		at := []string{"--kubeconfig", kubeconfig, "--inventory", "default/bench"}
		switch work {
		case preview:
			return command{args: append([]string{o.brine, "preview", "-f", b.manifests}, at...)}
		case destroy:
			return command{args: append([]string{o.brine, "destroy"}, at...)}
		}
		return command{args: append([]string{o.brine, "apply", "-f", b.manifests}, at...)}
	case "kapply":
		env := []string{"KUBECONFIG=" + kubeconfig}
		switch work {
		case preview:
			return command{env: env, args: []string{o.peers[tool], "preview", "--server-side", b.folder}}
		case destroy:
			return command{env: env, args: []string{o.peers[tool], "destroy", b.folder, "--delete-timeout=15m"}}
		}
		return command{env: env, args: []string{o.peers[tool], "apply", "--server-side", b.folder, "--reconcile-timeout=15m"}}
	case "kapp":
		at := kappAt(kubeconfig, "bench")
		switch work {
		case preview:
			return command{} // none of the server's
		case destroy:
			return command{args: append([]string{o.peers["kapp"], "delete"}, at...)}
		}
		return command{args: append([]string{o.peers["kapp"], "deploy", "-f", b.manifests}, at...)}
	case "helm":
		home := filepath.Dir(b.chart)
		env := []string{"KUBECONFIG=" + kubeconfig, "HELM_CACHE_HOME=" + home, "HELM_CONFIG_HOME=" + home, "HELM_DATA_HOME=" + home}
		at := []string{"bench", "-n", "default"}
		switch work {
		case preview:
			return command{env: env, args: []string{o.peers[tool], "install", "--dry-run=server", "bench", b.chart, "-n", "default"}}
		case destroy:
			return command{env: env, args: append([]string{o.peers[tool], "uninstall", "--wait", "--timeout=15m"}, at...)}
		case first:
			return command{env: env, args: []string{o.peers[tool], "install", "--wait", "--timeout=15m", "bench", b.chart, "-n", "default"}}
		}
		return command{env: env, args: []string{o.peers[tool], "upgrade", "--wait", "--timeout=15m", "bench", b.chart, "-n", "default"}}
	case "nelm":
		env := []string{"KUBECONFIG=" + kubeconfig}
		at := []string{"--release", "bench", "--namespace", "default"}
		switch work {
		case preview:
			return command{env: env, args: append([]string{o.peers[tool], "release", "plan", "install", b.chart}, at...)}
		case destroy:
			return command{env: env, args: append([]string{o.peers[tool], "release", "uninstall"}, at...)}
		}
		return command{env: env, args: append([]string{o.peers[tool], "release", "install", b.chart}, at...)}
	case "kluctl":
		env := []string{"KUBECONFIG=" + kubeconfig}
		at := []string{"--project-dir", b.project}
		switch work {
		case preview:
			return command{env: env, args: append([]string{o.peers[tool], "diff"}, at...)}
		case destroy:
			return command{env: env, args: append([]string{o.peers[tool], "delete", "--yes"}, at...)}
		}
		return command{env: env, args: append([]string{o.peers[tool], "deploy", "--yes"}, at...)}
	}
	return command{}
}

func kappAt(kubeconfig, app string) []string {
	return []string{"--kubeconfig", kubeconfig, "-n", "default", "-a", app, "-y"}
}

// The works that are done to the real platform's bundles, in this order.
const (
	toReady   = "first run, to ready"
	again     = "the same again"
	seeAgain  = "dry run of the same"
	seeOlder  = "dry run of the older release"
	older     = "back to the older release"
	seeNewer  = "dry run of the newer release"
	newer     = "forward again"
	deleteAll = "delete"
)

var platformWorks = []string{toReady, again, seeAgain, seeOlder, older, seeNewer, newer, deleteAll}

func (o options) platformCommand(tool, work, kubeconfig string) command {
	folder := filepath.Join(o.bundles, "metalk8s-new")
	if work == older || work == seeOlder {
		folder = filepath.Join(o.bundles, "metalk8s-old")
	}
	dryRun := work == seeAgain || work == seeOlder || work == seeNewer
	switch tool {
	case "brine":
		trace := kubeconfig + ".trace.json"
		at := []string{"--kubeconfig", kubeconfig, "--inventory", "default/platform", "--report", trace}
		if work == deleteAll {
			return command{args: append([]string{o.brine, "destroy"}, at...), trace: trace}
		}
		if dryRun {
			at = append(at, "--dry-run=server")
		}
		return command{args: append([]string{o.brine, "apply", "-f", folder}, at...), trace: trace}
	case "kapp", "kapp-tuned":
		if dryRun {
			return command{} // none of the server's
		}
		at := append(kappAt(kubeconfig, "platform"), tuned[tool]...)
		if work == deleteAll {
			return command{args: append([]string{o.peers["kapp"], "delete"}, at...)}
		}
		return command{args: append([]string{o.peers["kapp"], "deploy", "-f", folder}, at...)}
	}
	return command{}
}
