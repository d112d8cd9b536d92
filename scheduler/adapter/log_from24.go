package adapter

import (
	"context"

	"k8s.io/klog/v2"
)

// logSink writes to the logger of the context, which may name the pod, or else to klog.
type logSink struct{}

// callDepth skips logSink and scheduler.Logger, so that a line names the plugin's source file.
const callDepth = 2

func (logSink) Enabled(ctx context.Context, level int) bool {
	return klog.FromContext(ctx).V(level).Enabled()
}

func (logSink) Info(ctx context.Context, level int, message string, keysAndValues []interface{}) {
	klog.FromContext(ctx).WithCallDepth(callDepth).V(level).Info(message, keysAndValues...)
}

func (logSink) Error(ctx context.Context, err error, message string, keysAndValues []interface{}) {
	klog.FromContext(ctx).WithCallDepth(callDepth).Error(err, message, keysAndValues...)
}
