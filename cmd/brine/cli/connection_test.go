package cli_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"brine/bundle/remedy"
	"brine/cmd/brine/clitest"
)

// A connection that cannot be made is one sentence with what to do, and exit code 6.
func TestBrokenConnections(t *testing.T) {
	dir := t.TempDir()
	file := func(name, server string, ca []byte, context string) string {
		t.Helper()
		config := clientcmdapi.NewConfig()
		config.Clusters["c"] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: ca}
		config.Contexts["here"] = &clientcmdapi.Context{Cluster: "c"}
		config.CurrentContext = context
		path := filepath.Join(dir, name)
		if err := clientcmd.WriteToFile(*config, path); err != nil {
			t.Fatal(err)
		}
		return path
	}
	login := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>log in</html>") }))
	defer login.Close()
	closed := httptest.NewServer(nil)
	closed.Close()
	refuses := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
	secure := httptest.NewTLSServer(refuses)
	defer secure.Close()
	expired, expiredCA := expiredServer(t, refuses)
	ca := pemOf(secure.Certificate())
	localhost := strings.Replace(secure.URL, "127.0.0.1", "localhost", 1)
	if _, err := net.LookupHost("localhost"); err != nil {
		localhost = ""
	}
	broken := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for name, test := range map[string]struct {
		flags string
		want  []string
	}{
		"no file":         {"--kubeconfig " + filepath.Join(dir, "none"), []string{"there is no kubeconfig " + filepath.Join(dir, "none")}},
		"no CA":           {"--server " + closed.URL + " --certificate-authority " + filepath.Join(dir, "none.pem") + " --kubeconfig /dev/null", []string{"none.pem"}},
		"no contexts":     {"--kubeconfig /dev/null", []string{"the kubeconfig /dev/null has no contexts"}},
		"no context":      {"--kubeconfig " + file("nocontext", closed.URL, nil, ""), []string{"nocontext has no current context: give --context (it has here)"}},
		"another context": {"--context there --kubeconfig " + file("context", closed.URL, nil, "here"), []string{`context has no context "there": give --context (it has here)`}},
		"closed port":     {"--retry-timeout=0 --kubeconfig " + file("closed", closed.URL, nil, "here"), []string{closed.URL, "the connection was refused", "check the server's address"}},
		"a login page":    {"--kubeconfig " + file("login", login.URL, nil, "here"), []string{login.URL, "no Kubernetes API server", "login page"}},
		"no TLS":          {"--retry-timeout=0 --kubeconfig " + file("notls", strings.Replace(login.URL, "http:", "https:", 1), nil, "here"), []string{"does not speak TLS: check the port"}},
		"TLS only":        {"--retry-timeout=0 --kubeconfig " + file("tls", strings.Replace(secure.URL, "https:", "http:", 1), nil, "here"), []string{"speaks TLS only: write https://"}},
		"no YAML":         {"--kubeconfig " + broken("noyaml", "apiVersion: v1\nclusters: [\n"), []string{"the kubeconfig " + filepath.Join(dir, "noyaml") + ":", " is not YAML: ", "mend it, or give another one with --kubeconfig"}},
		"an anchor":       {"--kubeconfig " + broken("anchor", "users: [{name: a, user: {password: *hunter2}}]\n"), []string{"anchor is not YAML: a value that begins with * is not in quotes"}},
		"a folder":        {"--kubeconfig " + dir, []string{"the kubeconfig " + dir + " cannot be read", "mend it"}},
		"another CA":      {"--kubeconfig " + file("ca", secure.URL, expiredCA, "here"), []string{secure.URL, "not signed by the CA of the kubeconfig"}},
		"expired":         {"--kubeconfig " + file("expired", expired, expiredCA, "here"), []string{expired, "its certificate is not valid now"}},
		"another name":    {"--kubeconfig " + file("name", localhost, ca, "here"), []string{"its certificate is of another server"}},
		"credentials":     {"--kubeconfig " + file("credentials", secure.URL, ca, "here"), []string{secure.URL, "does not accept the credentials"}},
	} {
		if name == "another name" && localhost == "" {
			continue
		}
		commands := []string{"status --name=x"}
		if name == "closed port" || name == "another CA" {
			commands = append(commands, "history --name=x", "history show 1 --name=x", "get ConfigMap", "drift --name=x", "diff 1 2 --name=x", "inventory list", "inventory orphans")
		}
		for _, command := range commands {
			s := clitest.Command(t.Context(), nil, append(strings.Fields(command), strings.Fields(test.flags)...)...).Want(t, 6)
			for _, want := range test.want {
				if line, more, _ := strings.Cut(s.Stderr, "\n"); !strings.Contains(line, want) || more != "" && more != "more: "+remedy.HelpConnection+"\n" {
					t.Errorf("%s: %s: %q, want %q in one line, and its help", name, command, s.Stderr, want)
				}
			}
		}
	}
	// While it is asked again, the sentence is not said twice.
	again := clitest.Command(t.Context(), nil, "status", "--name=x", "--retry-timeout=1s", "--kubeconfig", file("again", closed.URL, nil, "here")).Want(t, 6)
	if again.Stderr == "" || strings.Count(again.Stderr, "refused") != 1 || !strings.HasPrefix(again.Stderr, "brine: retrying: "+closed.URL+" cannot be reached yet\n") {
		t.Errorf("it prints %q", again.Stderr)
	}
	t.Setenv("KUBECONFIG", filepath.Join(dir, "a")+string(os.PathListSeparator)+filepath.Join(dir, "b"))
	clitest.Command(t.Context(), nil, "status", "--name=x").Want(t, 6).Prints(t, "there is no kubeconfig "+filepath.Join(dir, "a")+", "+filepath.Join(dir, "b"))
}

// expiredServer is a server whose certificate was valid yesterday, and its CA.
func expiredServer(t *testing.T, h http.Handler) (address string, ca []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(-24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(h)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.URL, pemOf(certificate)
}

func pemOf(c *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})
}
