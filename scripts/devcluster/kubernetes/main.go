// Command kubernetes is kube-apiserver, kube-controller-manager and
// kube-scheduler of another Kubernetes version than devcluster's own, in one
// binary. VERSION.mod says which; go.mod alone builds none.
package main

import (
	"fmt"
	"os"
	_ "time/tzdata" // CronJobs name time zones

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

var programs = map[string]func() *cobra.Command{
	"kube-apiserver":          func() *cobra.Command { return apiserver.NewAPIServerCommand() },
	"kube-controller-manager": func() *cobra.Command { return controllermanager.NewControllerManagerCommand() },
	"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
}

func main() {
	if len(os.Args) < 2 || programs[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "Usage: kubernetes kube-apiserver|kube-controller-manager|kube-scheduler ARGUMENTS")
		os.Exit(2)
	}
	// Each finds os.Args as if it had been called by its own name.
	os.Args = os.Args[1:]
	os.Exit(cli.Run(programs[os.Args[0]]()))
}
