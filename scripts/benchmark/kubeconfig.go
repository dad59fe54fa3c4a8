package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"

	"sigs.k8s.io/yaml"
)

// server is an API server and how to be an administrator there, as in the
// kubeconfig that scripts/cluster writes: an authority and a token.
type server struct {
	url    string
	token  string
	etcd   string // its URL
	client *http.Client
}

func connect(kubeconfig string) (*server, error) {
	text, err := os.ReadFile(kubeconfig)
	if err != nil {
		return nil, err
	}
	var config struct {
		Clusters []struct {
			Cluster struct {
				Server    string `json:"server"`
				Authority string `json:"certificate-authority-data"`
			} `json:"cluster"`
		} `json:"clusters"`
		Users []struct {
			User struct {
				Token string `json:"token"`
			} `json:"user"`
		} `json:"users"`
	}
	if err := yaml.Unmarshal(text, &config); err != nil {
		return nil, fmt.Errorf("%s: %w", kubeconfig, err)
	}
	if len(config.Clusters) != 1 || len(config.Users) != 1 || config.Users[0].User.Token == "" {
		return nil, fmt.Errorf("%s: not of one cluster and one user with a token", kubeconfig)
	}
	cluster := config.Clusters[0].Cluster
	authority, err := base64.StdEncoding.DecodeString(cluster.Authority)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", kubeconfig, err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(authority) {
		return nil, errors.New("the authority in " + kubeconfig + " is no certificate")
	}
	transport := &http.Transport{
		TLSClientConfig:     &tls.Config{RootCAs: pool},
		ForceAttemptHTTP2:   true,
		MaxIdleConnsPerHost: 100,
	}
	return &server{url: cluster.Server, token: config.Users[0].User.Token, client: &http.Client{Transport: transport}}, nil
}

// through writes a kubeconfig for the same server behind another address.
func (s *server) through(address, kubeconfig, to string) error {
	text, err := os.ReadFile(kubeconfig)
	if err != nil {
		return err
	}
	return os.WriteFile(to, []byte(strings.ReplaceAll(string(text), s.url, "https://"+address)), 0o600)
}

func (s *server) host() string {
	u, err := url.Parse(s.url)
	if err != nil {
		return ""
	}
	return u.Host
}

// exists says whether there is an object.
func (s *server) exists(path string) (bool, error) {
	q, err := http.NewRequest(http.MethodGet, s.url+path, nil)
	if err != nil {
		return false, err
	}
	q.Header.Set("Authorization", "Bearer "+s.token)
	answer, err := s.client.Do(q)
	if err != nil {
		return false, err
	}
	return answer.StatusCode == http.StatusOK, answer.Body.Close()
}
