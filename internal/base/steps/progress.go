package steps

import "context"

type progressKey struct{}

// WithProgress returns a context in which Progress calls report.
func WithProgress(ctx context.Context, report func(text string)) context.Context {
	return context.WithValue(ctx, progressKey{}, report)
}

// Progress reports how far the running step is, such as "compile kubelet: 412 of 1,903 packages". Without
// WithProgress it does nothing.
func Progress(ctx context.Context, text string) {
	if report, ok := ctx.Value(progressKey{}).(func(string)); ok {
		report(text)
	}
}
