package verify

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/versions"
)

// LocalMetrics returns a function that reads the default scheduler's metrics on this machine with
// the credentials in cfg. The scheduler's serving certificate is self-signed and is not verified.
func LocalMetrics(cfg *rest.Config) func(ctx context.Context, node string) (string, error) {
	return func(ctx context.Context, _ string) (string, error) { return MetricsAt(ctx, cfg, versions.SecurePort) }
}

// MetricsAt reads the scheduler's metrics at a port on this machine, as LocalMetrics does.
func MetricsAt(ctx context.Context, cfg *rest.Config, port int) (_ string, err error) {
	local := rest.CopyConfig(cfg)
	local.Insecure, local.CAData, local.CAFile, local.ServerName = true, nil, "", ""
	local.Timeout = 5 * time.Second
	client, err := rest.HTTPClientFor(local)
	if err != nil {
		return "", err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://127.0.0.1:"+strconv.Itoa(port)+"/metrics",
		nil)
	if err != nil {
		return "", err
	}
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("the scheduler answers %s", response.Status)
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, 16<<20))
	return string(text), err
}

// RunningPrograms returns the SHA-256 of the programs that run in a container on this machine. Its
// processes are in a control group whose name contains the container's ID.
func RunningPrograms(containerID string) (sums []string, err error) {
	if containerID == "" {
		return nil, errors.New("the container has no ID")
	}
	groups, err := filepath.Glob("/proc/[0-9]*/cgroup")
	if err != nil {
		return nil, err
	}
	for _, group := range groups {
		text, err := os.ReadFile(group)
		if err != nil || !bytes.Contains(text, []byte(containerID)) {
			continue
		}
		program, err := os.Open(filepath.Join(filepath.Dir(group), "exe"))
		if err != nil {
			continue // the process has ended
		}
		sum := sha256.New()
		_, err = io.Copy(sum, program)
		if err = errors.Join(err, program.Close()); err != nil {
			return nil, err
		}
		sums = append(sums, hex.EncodeToString(sum.Sum(nil)))
	}
	if len(sums) == 0 {
		return nil, errors.New("no process of the container was found on this machine")
	}
	return sums, nil
}
