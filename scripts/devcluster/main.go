// Command devcluster is a whole Kubernetes control plane in one binary: a real
// etcd, kube-apiserver, kube-controller-manager and kube-scheduler, kwok in the
// place of the kubelets, kubectl, and the commands that run them together.
// scripts/cluster builds it and is the way to call it.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const usage = `Usage: cluster COMMAND [--dir D] [--port P] [--nodes N] [--audit] [--kubernetes V]
                       [--apiservers N] [--balance connection|request]

  up       start the cluster, or find it running; print the kubeconfig's path
  reset    the same, but with nothing in it
  down     end every process and remove the directory
  status   say what runs; exit 1 when the cluster is not up
  stop     kill a program of the cluster, such as kube-apiserver-2
  start    start it again; stdout is empty
  pause    it does nothing until resume: its connections stay open
  resume
  kubectl  Kubernetes' own client, for this cluster unless KUBECONFIG is set
`

func main() {
	if len(os.Args) < 2 {
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}
	name := os.Args[1]
	if run, ok := programs[name]; ok {
		os.Args = append([]string{name}, os.Args[2:]...)
		run()
		return
	}
	if err := command(name, os.Args[2:]); err != nil {
		fmt.Fprintf(os.Stderr, "cluster %s: %v\n", name, err)
		os.Exit(1)
	}
}

func command(name string, args []string) error {
	o, err := parse(name, args)
	if err != nil {
		return err
	}
	switch name {
	case "up":
		return printPath(up(o, false))
	case "reset":
		return printPath(up(o, true))
	case "down":
		return down(o.dir)
	case "status":
		return status(o.dir, os.Stdout)
	}
	if run := onePrograms[name]; run != nil {
		return one(o, run)
	}
	fmt.Fprint(os.Stderr, usage)
	return fmt.Errorf("no such command")
}

// options are what the caller asked for; a nil pointer was not asked for, and
// keeps what the cluster in the directory has.
type options struct {
	dir   string
	port  *int
	nodes *int
	audit *bool
	// kubernetes is a program that is kube-apiserver, kube-controller-manager and
	// kube-scheduler; "" is this one.
	kubernetes *string
	apiservers *int
	balance    *string
	program    string // of stop, start, pause and resume
}

func parse(name string, args []string) (options, error) {
	fs := flag.NewFlagSet(name, flag.ContinueOnError)
	var named string
	if onePrograms[name] != nil && len(args) > 0 {
		named, args = args[0], args[1:]
	}
	dir := fs.String("dir", defaultDir(), "where the cluster keeps its files")
	port := fs.Int("port", 0, "kube-apiserver's port; 0 is a free one")
	nodes := fs.Int("nodes", defaultNodes, "how many nodes")
	audit := fs.Bool("audit", false, "write every request to DIR/audit.log")
	kubernetes := fs.String("kubernetes", "", "the program of another Kubernetes version; scripts/cluster takes the version, and builds it")
	apiservers := fs.Int("apiservers", 1, "how many API servers, behind a balancer")
	balance := fs.String("balance", byConnection, "what the balancer gives to the next server in turn: connection or request")
	if err := fs.Parse(args); err != nil {
		return options{}, err
	}
	if fs.NArg() > 0 {
		return options{}, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	if *balance != byConnection && *balance != byRequest {
		return options{}, fmt.Errorf("--balance %q: want %s or %s", *balance, byConnection, byRequest)
	}
	abs, err := filepath.Abs(*dir)
	if err != nil {
		return options{}, err
	}
	o := options{dir: abs, program: named}
	if abs == defaultDir() {
		fixed := defaultPort
		o.port = &fixed
	}
	fs.Visit(func(f *flag.Flag) {
		switch f.Name {
		case "port":
			o.port = port
		case "nodes":
			o.nodes = nodes
		case "audit":
			o.audit = audit
		case "kubernetes":
			o.kubernetes = kubernetes
		case "apiservers":
			o.apiservers = apiservers
		case "balance":
			o.balance = balance
		}
	})
	return o, nil
}

func defaultDir() string {
	return filepath.Join(os.TempDir(), fmt.Sprintf("brine-cluster-%d", os.Getuid()))
}

func printPath(c *cluster, err error) error {
	if err != nil {
		return err
	}
	fmt.Println(c.path("kubeconfig"))
	return nil
}

// progress goes to stderr: stdout is the kubeconfig's path and nothing else.
func progress(format string, args ...any) {
	fmt.Fprintln(os.Stderr, "cluster: "+strings.TrimSpace(fmt.Sprintf(format, args...)))
}
