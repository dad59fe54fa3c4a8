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
)

// checksums writes SHA256SUMS of all that is there, and its signature.
func (r *release) checksums() error {
	files, err := os.ReadDir(r.Out)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	for _, f := range files {
		data, err := os.ReadFile(filepath.Join(r.Out, f.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%x  %s\n", sha256.Sum256(data), f.Name())
	}
	path := filepath.Join(r.Out, "SHA256SUMS")
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil || r.Key == "" {
		return err
	}
	signature, err := r.signed(bytes.NewReader(b.Bytes()), true)
	if err != nil {
		return fmt.Errorf("sign the checksums: %w", err)
	}
	return os.WriteFile(path+".asc", signature, 0o644)
}

// sign is for the header of RPM packages.
func (r *release) sign(data io.Reader) ([]byte, error) { return r.signed(data, false) }

func (r *release) signed(data io.Reader, armored bool) ([]byte, error) {
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
