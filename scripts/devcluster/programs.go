package main

import (
	"fmt"
	"os"
	"path/filepath"
	_ "time/tzdata" // CronJobs name time zones

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kwokconfig "sigs.k8s.io/kwok/pkg/config"
	kwok "sigs.k8s.io/kwok/pkg/kwok/cmd"
	kwoklog "sigs.k8s.io/kwok/pkg/log"
	kwoksignals "sigs.k8s.io/kwok/pkg/utils/signals"
)

// programs are the commands that this binary is besides its own. Each finds
// os.Args as if it had been called by its own name.
var programs = map[string]func(){
	"etcd":                    func() { etcdmain.Main(os.Args) },
	"kube-apiserver":          func() { runCobra(apiserver.NewAPIServerCommand()) },
	"kube-controller-manager": func() { runCobra(controllermanager.NewControllerManagerCommand()) },
	"kube-scheduler":          func() { runCobra(scheduler.NewSchedulerCommand()) },
	"kwok":                    runKwok,
	"kubectl":                 runKubectl,
	"balancer":                runBalancer,
}

func runCobra(cmd *cobra.Command) {
	os.Exit(cli.Run(cmd))
}

// runKwok does what kwok's main does: its command reads the configuration from
// the context, so the flags are parsed twice. Cobra would add the flags that
// Kubernetes registers for the whole process, and they clash with kwok's.
func runKwok() {
	pflag.CommandLine = pflag.NewFlagSet("kwok", pflag.ExitOnError)
	flags := pflag.NewFlagSet("global", pflag.ContinueOnError)
	flags.ParseErrorsAllowlist.UnknownFlags = true
	flags.Usage = func() {}
	ctx, _ := kwoklog.InitFlags(kwoksignals.SetupSignalContext(), flags)
	ctx, err := kwokconfig.InitFlags(ctx, flags)
	if err == nil {
		cmd := kwok.NewCommand(ctx)
		cmd.PersistentFlags().AddFlagSet(flags)
		err = cmd.ExecuteContext(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "kwok:", err)
		os.Exit(1)
	}
}

func runKubectl() {
	if os.Getenv("KUBECONFIG") == "" {
		if path := filepath.Join(defaultDir(), "kubeconfig"); exists(path) {
			_ = os.Setenv("KUBECONFIG", path)
		}
	}
	if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
		kubectlutil.CheckErr(err)
	}
}
