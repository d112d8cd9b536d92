package simulate

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"
)

// completeTime is the time limit for the scheduler to write its configuration.
const completeTime = time.Minute

// Complete returns a configuration as the scheduler completes it with its release's defaults.
func (r *Run) Complete(ctx context.Context, c *Configuration) (text []byte, err error) {
	in := func(name string) string { return filepath.Join(r.Options.Dir, name) }
	s := &r.Options.Scheduler
	args := append([]string{"--secure-port=0", "--write-config-to=" + s.path(r.Options.Dir, outputFile)}, c.Args...)
	process, err := s.execute(ctx, r.Options.Dir, in("defaults.log"), in(kubeconfigFile), c, args)
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
	if text, err = process.output(r.Options.Dir); err != nil || len(text) == 0 {
		return nil, fmt.Errorf("have the scheduler write its configuration: %s", process.Tail())
	}
	return text, nil
}
