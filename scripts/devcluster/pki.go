package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"time"
)

// frontProxyName is whom aggregated API servers let speak for a user.
const frontProxyName = "front-proxy-client"

// writePKI makes what kubeadm makes: an authority for serving and client
// certificates, another for the aggregation layer (one that signs clients must
// not be able to sign a front proxy), and the key of service account tokens.
func writePKI(c *cluster) error {
	ca, err := newAuthority(c, "ca")
	if err != nil {
		return err
	}
	err = ca.issue(c, "apiserver", x509.Certificate{
		Subject:     pkix.Name{CommonName: "kube-apiserver"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames: []string{"localhost", "kubernetes", "kubernetes.default",
			"kubernetes.default.svc", "kubernetes.default.svc.cluster.local"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.ParseIP(serviceIP)},
	})
	if err != nil {
		return err
	}
	frontProxy, err := newAuthority(c, "front-proxy-ca")
	if err != nil {
		return err
	}
	err = frontProxy.issue(c, "front-proxy-client", x509.Certificate{
		Subject:     pkix.Name{CommonName: frontProxyName},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err != nil {
		return err
	}
	_, err = newKey(c, "service-account")
	return err
}

type authority struct {
	cert *x509.Certificate
	key  crypto.Signer
}

func newAuthority(c *cluster, name string) (authority, error) {
	key, err := newKey(c, name)
	if err != nil {
		return authority{}, err
	}
	a := authority{key: key, cert: &x509.Certificate{
		Subject:               pkix.Name{CommonName: "brine devcluster " + name},
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}}
	a.cert, err = a.sign(c, name, a.cert, key.Public())
	return a, err
}

func (a authority) issue(c *cluster, name string, template x509.Certificate) error {
	key, err := newKey(c, name)
	if err != nil {
		return err
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	_, err = a.sign(c, name, &template, key.Public())
	return err
}

func (a authority) sign(c *cluster, name string, template *x509.Certificate, pub crypto.PublicKey) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 64))
	if err != nil {
		return nil, err
	}
	template.SerialNumber = serial
	template.NotBefore = time.Now().Add(-time.Hour) // clocks that were set back
	template.NotAfter = template.NotBefore.AddDate(10, 0, 0)
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, pub, a.key)
	if err != nil {
		return nil, err
	}
	if err := writePEM(c.path(name+".crt"), "CERTIFICATE", der); err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

func newKey(c *cluster, name string) (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return key, writePEM(c.path(name+".key"), "EC PRIVATE KEY", der)
}

func writePEM(path, kind string, der []byte) error {
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
}
