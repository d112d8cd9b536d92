package main

import (
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// here is the directory of this package: scripts run elsewhere.
var here, _ = os.Getwd()

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"pmk-sched": main, "kubectl-pmk_sched": main, "pmk-sched-operation": operation})
}

// The scripts contain commands of a user and their output.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":      exits,
			"kubeconfig": writeNodeKubeconfig,
			"toyrelease": toyRelease,
			"base":       writeBase,
			"keypair":    writeKeyPair,
			"registry":   startRegistry,
		},
		Setup: func(env *testscript.Env) error {
			cache, err := os.UserCacheDir()
			if err != nil {
				return err
			}
			// The standard library is compiled once; all else is the script's own.
			env.Setenv("GOCACHE", cmp.Or(os.Getenv("GOCACHE"), filepath.Join(cache, "go-build")))
			env.Setenv("TMPDIR", filepath.Join(env.WorkDir, "tmp"))
			return os.MkdirAll(filepath.Join(env.WorkDir, "tmp"), 0o755)
		},
	})
}

// exits STATUS PROGRAM ARGUMENT... runs a program that has to end with that status.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits STATUS PROGRAM ARGUMENT...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	var exit *exec.ExitError
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit status %d, want %d", got, want)
	}
}

// kubeconfig FILE VALIDITY writes a node's scheduler kubeconfig whose
// certificate is valid for that long from now; below zero it has expired.
func writeNodeKubeconfig(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: kubeconfig FILE VALIDITY")
	}
	validity, err := time.ParseDuration(args[1])
	ts.Check(err)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	ts.Check(err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: "system:kube-scheduler", Organization: []string{"system:kube-scheduler"}},
		NotBefore:    time.Now().Add(-1000 * time.Hour),
		NotAfter:     time.Now().Add(validity),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	ts.Check(err)
	keyDER, err := x509.MarshalECPrivateKey(key)
	ts.Check(err)
	cert, secret := encodePEM("CERTIFICATE", der), encodePEM("EC PRIVATE KEY", keyDER)
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: local, user: u}}]
clusters: [{name: local, cluster: {server: 'https://localhost:443', certificate-authority-data: %s}}]
users: [{name: u, user: {client-certificate-data: %s, client-key-data: %s}}]
`, cert, cert, secret)
	file := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(filepath.Dir(file), 0o755))
	ts.Check(os.WriteFile(file, []byte(text), 0o600))
}

func encodePEM(kind string, der []byte) string {
	return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}
