package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Whoever has the public key alone can verify a release with gpg.
func TestSignature(t *testing.T) {
	gpg, err := exec.LookPath("gpg")
	if err != nil {
		t.Skip("SKIPPED: there is no gpg here to make a key, and to verify with")
	}
	dir := t.TempDir()
	with := func(home string, args ...string) *exec.Cmd {
		cmd := exec.Command(gpg, append([]string{"--batch", "--no-autostart"}, args...)...)
		cmd.Env = append(os.Environ(), "GNUPGHOME="+home)
		return cmd
	}
	short, err := os.MkdirTemp("/tmp", "gpg-") //nolint:usetesting // a socket's path has to be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(short) })
	maker, reader := filepath.Join(short, "maker"), filepath.Join(short, "reader")
	for _, home := range []string{maker, reader} {
		if err := os.Mkdir(home, 0o700); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			stop := exec.Command("gpgconf", "--kill", "all")
			stop.Env = append(os.Environ(), "GNUPGHOME="+home)
			_ = stop.Run()
		})
	}
	generate := exec.Command(gpg, "--batch", "--passphrase", "opensesame", "--pinentry-mode", "loopback", "--quick-generate-key", "Release <release@example.com>", "rsa2048", "sign")
	generate.Env = append(os.Environ(), "GNUPGHOME="+maker)
	run(t, generate)
	export := exec.Command(gpg, "--batch", "--passphrase", "opensesame", "--pinentry-mode", "loopback", "--armor", "--export-secret-keys")
	export.Env = append(os.Environ(), "GNUPGHOME="+maker)
	key := filepath.Join(dir, "key.asc")
	if err := os.WriteFile(key, []byte(run(t, export)), 0o600); err != nil {
		t.Fatal(err)
	}
	public := run(t, with(maker, "--armor", "--export"))

	out := filepath.Join(dir, "dist")
	if err := os.Mkdir(out, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(out, "a"), []byte("a"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("BRINE_SIGNING_PASSPHRASE", "wrong")
	r := &release{Out: out, Key: key}
	if err := r.checksums(out); err == nil || !strings.Contains(err.Error(), "BRINE_SIGNING_PASSPHRASE") {
		t.Errorf("a wrong passphrase: %v", err)
	}
	if err := os.Remove(filepath.Join(out, "SHA256SUMS")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("BRINE_SIGNING_PASSPHRASE", "opensesame")
	if err := r.checksums(out); err != nil {
		t.Fatal(err)
	}
	imported := with(reader, "--import")
	imported.Stdin = strings.NewReader(public)
	run(t, imported)
	run(t, with(reader, "--verify", filepath.Join(out, "SHA256SUMS.asc"), filepath.Join(out, "SHA256SUMS")))
	changed := append(bytes.Clone(read(t, filepath.Join(out, "SHA256SUMS"))), '\n')
	if err := os.WriteFile(filepath.Join(out, "SHA256SUMS"), changed, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := with(reader, "--verify", filepath.Join(out, "SHA256SUMS.asc"), filepath.Join(out, "SHA256SUMS")).Run(); err == nil {
		t.Error("gpg takes checksums that were changed")
	}
}

// ssh-keygen is on nearly every machine: whoever has the public key verifies a release
// with it, without a network.
func TestSignatureOfOpenSSH(t *testing.T) {
	keygen, err := exec.LookPath("ssh-keygen")
	if err != nil {
		t.Skip("SKIPPED: there is no ssh-keygen here to make a key, and to verify with")
	}
	for _, passphrase := range []string{"", "opensesame"} {
		dir, out := t.TempDir(), t.TempDir()
		key := filepath.Join(dir, "key")
		run(t, exec.Command(keygen, "-q", "-t", "ed25519", "-N", passphrase, "-C", "release@example.com", "-f", key))
		if err := os.WriteFile(filepath.Join(out, "a"), []byte("a"), 0o644); err != nil {
			t.Fatal(err)
		}
		if r := (&release{Out: out, Key: key}); passphrase != "" {
			t.Setenv("BRINE_SIGNING_PASSPHRASE", "wrong")
			if err := r.checksums(out); err == nil || !strings.Contains(err.Error(), "BRINE_SIGNING_PASSPHRASE") {
				t.Errorf("a wrong passphrase: %v", err)
			}
			if err := os.Remove(filepath.Join(out, "SHA256SUMS")); err != nil {
				t.Fatal(err)
			}
		}
		t.Setenv("BRINE_SIGNING_PASSPHRASE", passphrase)
		if err := (&release{Out: out, Key: key}).checksums(out); err != nil {
			t.Fatal(err)
		}
		signers, sums := filepath.Join(dir, "signers"), filepath.Join(out, "SHA256SUMS")
		if err := os.WriteFile(signers, append([]byte("release@example.com "), read(t, key+".pub")...), 0o644); err != nil {
			t.Fatal(err)
		}
		verify := func(text []byte) error {
			cmd := exec.Command(keygen, "-Y", "verify", "-f", signers, "-I", "release@example.com", "-n", "brine-release", "-s", sums+".sig")
			cmd.Stdin = bytes.NewReader(text)
			return cmd.Run()
		}
		if err := verify(read(t, sums)); err != nil {
			t.Errorf("the signature does not verify: %v", err)
		}
		if err := verify(append(read(t, sums), '\n')); err == nil {
			t.Error("ssh-keygen takes checksums that were changed")
		}
	}
}
