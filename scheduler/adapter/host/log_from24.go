package host

import (
	"context"

	"k8s.io/klog/v2"
)

// Log writes to the logger of the context, which knows the pod where the release logs so, or else
// to the scheduler's own.
type Log struct{}

// depth leaves out this sink and scheduler.Logger, so that a line names the plugin's file.
const depth = 2

// Enabled tells whether lines of a level are written.
func (Log) Enabled(ctx context.Context, level int) bool {
	return klog.FromContext(ctx).V(level).Enabled()
}

// Info writes a line.
func (Log) Info(ctx context.Context, level int, message string, keysAndValues []interface{}) {
	klog.FromContext(ctx).WithCallDepth(depth).V(level).Info(message, keysAndValues...)
}

// Error writes a line about an error.
func (Log) Error(ctx context.Context, err error, message string, keysAndValues []interface{}) {
	klog.FromContext(ctx).WithCallDepth(depth).Error(err, message, keysAndValues...)
}
