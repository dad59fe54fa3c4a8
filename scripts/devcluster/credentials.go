package main

import (
	"crypto/rand"
	"fmt"
	"os"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
	api "k8s.io/client-go/tools/clientcmd/api"
)

// users maps a kubeconfig's file name to its user and group. The controllers'
// names are those that RBAC's bootstrap policy has roles for; kwok stands for
// every kubelet at once, which no bootstrap role covers.
var users = map[string]struct{ name, group string }{
	"kubeconfig":                   {"admin", "system:masters"},
	"kube-controller-manager.conf": {"system:kube-controller-manager", ""},
	"kube-scheduler.conf":          {"system:kube-scheduler", ""},
	"kwok.conf":                    {"kwok", "system:masters"},
}

// writeTokens makes each user's token and kube-apiserver's token file.
func writeTokens(c *cluster) error {
	c.Tokens = map[string]string{}
	var lines strings.Builder
	for file, u := range users {
		token := rand.Text()
		c.Tokens[file] = token
		fmt.Fprintf(&lines, "%s,%s,%s,%q\n", token, u.name, u.name, u.group)
	}
	return os.WriteFile(c.path("tokens.csv"), []byte(lines.String()), 0o600)
}

// writeKubeconfigs writes a self-contained kubeconfig for each user: tests copy
// them about, and some clients run elsewhere.
func writeKubeconfigs(c *cluster) error {
	ca, err := os.ReadFile(c.path("ca.crt"))
	if err != nil {
		return err
	}
	for file, u := range users {
		config := api.NewConfig()
		server := c.direct()
		if file == "kubeconfig" {
			server = c.server()
		}
		config.Clusters["brine"] = &api.Cluster{Server: server, CertificateAuthorityData: ca}
		config.AuthInfos[u.name] = &api.AuthInfo{Token: c.Tokens[file]}
		config.Contexts["brine"] = &api.Context{Cluster: "brine", AuthInfo: u.name}
		config.CurrentContext = "brine"
		if err := clientcmd.WriteToFile(*config, c.path(file)); err != nil {
			return err
		}
	}
	return nil
}
