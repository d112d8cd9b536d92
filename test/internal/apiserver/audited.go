//go:build linux

package apiserver

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/pmk-sched/pmk-sched/test/internal/audit"
)

// StartAudited starts an API server that logs each request. It returns the path of the log in dir,
// which [audit.Requests] reads. args are more flags of kube-apiserver.
func StartAudited(ctx context.Context, dir string, args ...string) (s *Server, log string, err error) {
	binaries, err := FindBinaries(ctx)
	if err != nil {
		return nil, "", err
	}
	flags, log, err := AuditFlags(dir)
	if err != nil {
		return nil, "", err
	}
	s, err = Start(ctx, binaries, append(args, flags...)...)
	return s, log, err
}

// AuditFlags returns the flags with which kube-apiserver logs each request, and the path of the log
// in dir.
func AuditFlags(dir string) (flags []string, log string, err error) {
	policy := filepath.Join(dir, "policy.yaml")
	if err := os.WriteFile(policy, []byte(audit.Policy), 0o600); err != nil {
		return nil, "", fmt.Errorf("write audit policy: %w", err)
	}
	log = filepath.Join(dir, "audit.log")
	return []string{"--audit-policy-file=" + policy, "--audit-log-path=" + log}, log, nil
}
