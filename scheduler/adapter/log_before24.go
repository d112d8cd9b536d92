//go:build ignore

package adapter

import (
	"context"

	"k8s.io/klog/v2"
)

// logSink writes to klog: contexts have no logger before 1.24.
type logSink struct{}

func (logSink) Enabled(_ context.Context, level int) bool {
	return klog.V(klog.Level(level)).Enabled()
}

func (logSink) Info(_ context.Context, level int, message string, keysAndValues []interface{}) {
	klog.V(klog.Level(level)).InfoS(message, keysAndValues...)
}

func (logSink) Error(_ context.Context, err error, message string, keysAndValues []interface{}) {
	klog.ErrorS(err, message, keysAndValues...)
}
