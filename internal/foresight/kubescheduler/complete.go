package kubescheduler

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"
)

// completeTime is the time limit for the scheduler to write its configuration.
const completeTime = time.Minute

// Complete returns a configuration as the scheduler completes it with its release's defaults. Its
// files are in dir, which is private.
func (s *Scheduler) Complete(ctx context.Context, dir, kubeconfig string, c *Configuration) (text []byte, err error) {
	args := append([]string{"--secure-port=0", "--write-config-to=" + s.path(dir, outputFile)}, c.Args...)
	process, err := s.execute(ctx, dir, filepath.Join(dir, "defaults.log"), kubeconfig, c, args)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, process.Kill()) }()
	limited, cancel := context.WithTimeout(ctx, completeTime)
	defer cancel()
	select {
	case <-process.Done():
	case <-limited.Done():
		return nil, fmt.Errorf("have the scheduler write its configuration: %w", limited.Err())
	}
	if text, err = process.output(dir); err != nil || len(text) == 0 {
		return nil, fmt.Errorf("have the scheduler write its configuration: %s", process.Tail())
	}
	return text, nil
}
