//go:build linux

package apiserver

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The port stays free although an outgoing connection or another server takes the same port at
// 127.0.0.1.
func TestFreeAddressStaysFree(t *testing.T) {
	address, err := FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil || host == "127.0.0.1" || !net.ParseIP(host).IsLoopback() {
		t.Fatalf("the address is %s, %v", address, err)
	}
	for _, at := range []string{net.JoinHostPort("127.0.0.1", port), address} {
		listener, err := net.Listen("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = listener.Close() })
	}
}

func TestAPIServerWhosePortIsTakenIsStartedOnAnother(t *testing.T) {
	dir := t.TempDir()
	program := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		return file
	}
	started := filepath.Join(dir, "started")
	_, err := Start(t.Context(), Options{
		Etcd: program("etcd", "exec /bin/sleep 60"),
		KubeAPIServer: program("kube-apiserver",
			`echo "$@" >>`+started+`; echo "listen tcp: bind: address already in use"; exit 1`),
		Dir: t.TempDir(),
	})
	if !errors.Is(err, errPortTaken) || !strings.Contains(err.Error(), "address already in use") {
		t.Errorf("got %v", err)
	}
	text, err := os.ReadFile(started)
	if err != nil {
		t.Fatal(err)
	}
	ports := map[string]bool{}
	for _, port := range regexp.MustCompile(`--secure-port=\d+`).FindAllString(string(text), -1) {
		ports[port] = true
	}
	if len(ports) != maxStarts {
		t.Errorf("it was started with %v:\n%s", ports, text)
	}
}
