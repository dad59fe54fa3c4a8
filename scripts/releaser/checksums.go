package main

import (
	"bytes"
	"crypto"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	"github.com/hiddeco/sshsig"
	"golang.org/x/crypto/ssh"
)

// checksums writes SHA256SUMS of all that a folder has, and its signature.
func (r *release) checksums(dir string) error {
	sums, err := sumsOf(dir)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	for _, s := range sums {
		fmt.Fprintf(&b, "%s  %s\n", s.Hex, s.Name)
	}
	path := filepath.Join(dir, "SHA256SUMS")
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil || r.Key == "" {
		return err
	}
	ending, sign := ".asc", func() ([]byte, error) { return r.openPGP(bytes.NewReader(b.Bytes()), true) }
	if r.openSSH() {
		ending, sign = ".sig", func() ([]byte, error) { return r.signSSH(b.Bytes()) }
	}
	signature, err := sign()
	if err != nil {
		return fmt.Errorf("sign the checksums: %w", err)
	}
	return os.WriteFile(path+ending, signature, 0o644)
}

type sum struct{ Name, Hex string }

// sumsOf gives the SHA-256 of each file of a folder, by name.
func sumsOf(dir string) ([]sum, error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var sums []sum
	for _, f := range files {
		data, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			return nil, err
		}
		sums = append(sums, sum{f.Name(), fmt.Sprintf("%x", sha256.Sum256(data))})
	}
	return sums, nil
}

// openSSH says whether the key is one of ssh-keygen, and not of OpenPGP.
func (r *release) openSSH() bool {
	data, err := os.ReadFile(r.Key)
	return err == nil && bytes.Contains(data, []byte("OPENSSH PRIVATE KEY"))
}

// namespace is what an OpenSSH signature is for (ssh-keygen -Y sign -n): one that was
// made for something else does not verify a release.
const namespace = "brine-release"

// signSSH signs as "ssh-keygen -Y sign" does. Ed25519 gives the same bytes each time.
func (r *release) signSSH(data []byte) ([]byte, error) {
	text, err := os.ReadFile(r.Key)
	if err != nil {
		return nil, err
	}
	key, err := ssh.ParsePrivateKey(text)
	if missing := (*ssh.PassphraseMissingError)(nil); errors.As(err, &missing) {
		key, err = ssh.ParsePrivateKeyWithPassphrase(text, []byte(os.Getenv("BRINE_SIGNING_PASSPHRASE")))
	}
	if err != nil {
		return nil, fmt.Errorf("read the key %s (BRINE_SIGNING_PASSPHRASE opens one with a passphrase): %w", r.Key, err)
	}
	signature, err := sshsig.Sign(bytes.NewReader(data), key, sshsig.HashSHA512, namespace)
	if err != nil {
		return nil, err
	}
	return sshsig.Armor(signature), nil
}

// sign is for the header of RPM packages.
func (r *release) sign(data io.Reader) ([]byte, error) { return r.openPGP(data, false) }

// openPGP is a signature as GnuPG makes it.
func (r *release) openPGP(data io.Reader, armored bool) ([]byte, error) {
	key, err := os.Open(r.Key)
	if err != nil {
		return nil, err
	}
	defer key.Close()
	keys, err := openpgp.ReadArmoredKeyRing(key)
	if err != nil {
		return nil, err
	}
	signer := keys[0]
	if signer.PrivateKey == nil {
		return nil, errors.New("the key file has no secret key")
	}
	if signer.PrivateKey.Encrypted {
		if err := signer.DecryptPrivateKeys([]byte(os.Getenv("BRINE_SIGNING_PASSPHRASE"))); err != nil {
			return nil, fmt.Errorf("BRINE_SIGNING_PASSPHRASE does not open the key: %w", err)
		}
	}
	var b bytes.Buffer
	config := &packet.Config{DefaultHash: crypto.SHA256}
	if armored {
		err = openpgp.ArmoredDetachSign(&b, signer, data, config)
	} else {
		err = openpgp.DetachSign(&b, signer, data, config)
	}
	return b.Bytes(), err
}
