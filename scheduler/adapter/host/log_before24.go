//go:build pmksched

package host

import (
	"context"

	"k8s.io/klog/v2"
)

// Log writes to the scheduler's log: there are no loggers in contexts yet.
type Log struct{}

// Enabled tells whether lines of a level are written.
func (Log) Enabled(_ context.Context, level int) bool {
	return klog.V(klog.Level(level)).Enabled()
}

// Info writes a line.
func (Log) Info(_ context.Context, level int, message string, keysAndValues []interface{}) {
	klog.V(klog.Level(level)).InfoS(message, keysAndValues...)
}

// Error writes a line about an error.
func (Log) Error(_ context.Context, err error, message string, keysAndValues []interface{}) {
	klog.ErrorS(err, message, keysAndValues...)
}
