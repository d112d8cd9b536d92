//go:build linux

package simulate

import (
	"crypto/tls"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Another user of the machine sees the addresses of etcd in the list of processes.
func TestEtcdAnswersOnlyClientsWithTheCertificateOfTheRun(t *testing.T) {
	atReleases(t, func(t *testing.T, release string) {
		withSimulator(t, release, func(*simulator) error {
			addresses := etcdAddresses(t)
			if len(addresses) < 2 {
				t.Fatalf("etcd listens at %q", addresses)
			}
			client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
				DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
			}}
			for _, address := range addresses {
				for _, path := range []string{"/v3/kv/range", "/health", "/metrics", "/version", "/members"} {
					response, err := client.Post(address+path, "application/json",
						strings.NewReader(`{"key":"AA==","range_end":"AA=="}`))
					if err == nil {
						_ = response.Body.Close()
						t.Errorf("%s%s answers a client without a certificate: %s", address, path, response.Status)
					}
				}
			}
			return nil
		})
	})
}

// etcdAddresses returns the URLs of the etcd processes that this process has started.
func etcdAddresses(t *testing.T) (all []string) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		status, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "status")) // it may have ended
		if !strings.Contains(string(status), "\nPPid:\t"+strconv.Itoa(os.Getpid())+"\n") {
			continue
		}
		line, _ := os.ReadFile(file)
		for _, found := range regexp.MustCompile(`--listen-(?:client|peer)-urls=([^\x00]+)`).FindAllSubmatch(line, -1) {
			all = append(all, string(found[1]))
		}
	}
	return all
}
