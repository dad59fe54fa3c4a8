package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	_ "embed"

	nodestages "sigs.k8s.io/kwok/kustomize/stage/node/fast"
	leasestages "sigs.k8s.io/kwok/kustomize/stage/node/heartbeat-with-lease"
	podstages "sigs.k8s.io/kwok/kustomize/stage/pod/fast"
)

const (
	serviceRange = "10.0.0.0/16" // bundles ask for addresses in kube-apiserver's default
	serviceIP    = "10.0.0.1"    // the kubernetes Service always has the first one
	podRange     = "10.244.0.0/16"

	// The clients' own limits are for clusters whose API server must be spared;
	// here they would be what a benchmark measures.
	clientQPS   = 500
	clientBurst = 1000
)

// programs are those that run, in the order to start in, and to show.
func (c *cluster) programs() []string {
	return append(append([]string{"etcd"}, c.servers()...), "kube-controller-manager", "kube-scheduler", "kwok")
}

// servers are the API servers, kube-apiserver-1 to N behind a balancer if there
// are several of them.
func (c *cluster) servers() []string {
	if len(c.Ports.Servers) == 0 {
		return []string{"kube-apiserver"}
	}
	var names []string
	for i := range c.Ports.Servers {
		names = append(names, fmt.Sprintf("kube-apiserver-%d", i+1))
	}
	return append(names, "balancer")
}

// program is what a process of that name runs.
func program(name string) string { return strings.TrimRight(name, "-0123456789") }

func arguments(c *cluster, name string) []string {
	limits := []string{
		fmt.Sprintf("--kube-api-qps=%d", clientQPS),
		fmt.Sprintf("--kube-api-burst=%d", clientBurst),
	}
	switch program(name) {
	case "etcd":
		return []string{
			"--data-dir=" + c.path("etcd"),
			"--listen-client-urls=" + c.etcd(),
			"--advertise-client-urls=" + c.etcd(),
			"--listen-peer-urls=http://127.0.0.1:0", // it has no peers
			"--unsafe-no-fsync",
			"--log-level=warn",
		}
	case "kube-apiserver":
		return apiserverArguments(c, c.port(name))
	case "balancer":
		var servers []string
		for _, port := range c.Ports.Servers {
			servers = append(servers, fmt.Sprintf("127.0.0.1:%d", port))
		}
		return []string{
			fmt.Sprintf("--listen=127.0.0.1:%d", c.Ports.APIServer), "--servers=" + strings.Join(servers, ","), "--by=" + cmp.Or(c.Balance, byConnection),
			"--cert=" + c.path("apiserver.crt"), "--key=" + c.path("apiserver.key"), "--ca=" + c.path("ca.crt"),
		}
	case "kube-controller-manager":
		return append(limits,
			"--kubeconfig="+c.path("kube-controller-manager.conf"),
			"--use-service-account-credentials",
			"--leader-elect=false",
			"--secure-port=0",
			"--root-ca-file="+c.path("ca.crt"),
			"--service-account-private-key-file="+c.path("service-account.key"),
			"--cluster-signing-cert-file="+c.path("ca.crt"),
			"--cluster-signing-key-file="+c.path("ca.key"),
			// kwok's nodes send no heartbeats. A node that is not ready takes the
			// readiness of its pods with it, and kwok does not give that back.
			"--node-monitor-grace-period=24h",
		)
	case "kube-scheduler":
		return append(limits,
			"--kubeconfig="+c.path("kube-scheduler.conf"),
			"--leader-elect=false",
			"--secure-port=0",
		)
	case "kwok":
		return []string{
			"--kubeconfig=" + c.path("kwok.conf"),
			"--config=" + c.path("kwok.yaml"),
			"--manage-all-nodes=true",
			"--cidr=" + podRange,
			"--node-ip=127.0.0.1",
			fmt.Sprintf("--node-port=%d", c.Ports.Kwok),
			fmt.Sprintf("--server-address=127.0.0.1:%d", c.Ports.Kwok),
			"--tls-cert-file=" + c.path("apiserver.crt"),
			"--tls-private-key-file=" + c.path("apiserver.key"),
		}
	}
	panic("no arguments for " + name)
}

func apiserverArguments(c *cluster, port int) []string {
	args := []string{
		"--etcd-servers=" + c.etcd(),
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", port),
		"--tls-cert-file=" + c.path("apiserver.crt"),
		"--tls-private-key-file=" + c.path("apiserver.key"),
		"--client-ca-file=" + c.path("ca.crt"),
		"--token-auth-file=" + c.path("tokens.csv"),
		"--authorization-mode=Node,RBAC",
		"--allow-privileged",
		"--service-cluster-ip-range=" + serviceRange,
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + c.path("service-account.key"),
		"--service-account-signing-key-file=" + c.path("service-account.key"),
		// Nothing routes to the loopback address that it would publish.
		"--endpoint-reconciler-type=none",
		// The aggregation layer. With routing off it goes where a Service's name
		// resolves, so an ExternalName of localhost leads to a test's own server.
		"--requestheader-client-ca-file=" + c.path("front-proxy-ca.crt"),
		"--requestheader-allowed-names=" + frontProxyName,
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + c.path("front-proxy-client.crt"),
		"--proxy-client-key-file=" + c.path("front-proxy-client.key"),
		"--enable-aggregator-routing=false",
	}
	if c.Audit {
		args = append(args,
			"--audit-policy-file="+c.path("audit.yaml"),
			"--audit-log-path="+c.path("audit.log"),
			"--audit-log-mode=blocking",   // a request that was answered is in the log
			"--audit-log-maxsize=1000000", // megabytes: counting wants one file
		)
	}
	return args
}

// stages are those of kwok that are not used as they come.
//
//go:embed stages.yaml
var stages string

// auditPolicy leaves out the stage that says nothing new, so that a request is
// one line (a watch that is still open, none).
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- level: Metadata
`

// containerLog is what every simulated container has logged, in the format of
// the container runtimes.
func containerLog() string {
	now := time.Now().UTC().Format(time.RFC3339Nano)
	return now + " stderr F simulated by kwok: no container runs here\n"
}

func writeConfigs(c *cluster) error {
	kwok := strings.Join([]string{
		strings.ReplaceAll(stages, "CONTAINER_LOG", c.path("container.txt")),
		nodestages.DefaultNodeInit,
		leasestages.DefaultNodeHeartbeatWithLease,
		podstages.DefaultPodDelete,
	}, "\n---\n")
	return errors.Join(
		os.WriteFile(c.path("audit.yaml"), []byte(auditPolicy), 0o600),
		os.WriteFile(c.path("container.txt"), []byte(containerLog()), 0o600),
		os.WriteFile(c.path("kwok.yaml"), []byte(kwok), 0o600),
	)
}
