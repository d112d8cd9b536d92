package configcheck

import "testing"

// The outputs were printed by programs of Go 1.18, which compiled Kubernetes 1.24, and Go 1.26.
func TestPanicReason(t *testing.T) {
	const trace = "\ngoroutine 1 [running]:\nexample.com/p.New(0x1aec3a816068?, {0x7ffcf8503a09?, 0x54c558?})\n" +
		"\texample.com/p/plugin.go:14 +0x229\nmain.main()\n\tmain.go:16 +0x3f\n"
	for name, tc := range map[string]struct{ output, want string }{
		"text": {"panic: no argument threshold\n" + trace,
			"it panics: no argument threshold, at example.com/p/plugin.go:14"},
		"after messages": {"I1121 07:47:48.1   1 serving.go:331] Generated self-signed cert in-memory\npanic: boom\n" + trace,
			"it panics: boom, at example.com/p/plugin.go:14"},
		"two lines": {"panic: first\n\tsecond\n" + trace, "it panics: first second, at example.com/p/plugin.go:14"},
		"signal": {
			"panic: runtime error: invalid memory address or nil pointer dereference\n[signal SIGSEGV: segmentation violation " +
				"code=0x1 addr=0x0 pc=0x489460]\n" + trace,
			"it panics: runtime error: invalid memory address or nil pointer dereference, at example.com/p/plugin.go:14",
		},
		"raised again": {
			"panic: at first [recovered, repanicked]\n\ngoroutine 1 [running]:\npanic({0x492e20?, 0x4b3d80?})\n" +
				"\truntime/panic.go:860 +0x13a\nmain.New(...)\n\tmain.go:30 +0x216\n",
			"it panics: at first, at main.go:30",
		},
		"raised again, Go 1.18": {
			"panic: at first [recovered]\n\tpanic: at first\n\ngoroutine 1 [running]:\nmain.New.func1()\n\tmain.go:29 +0x18\n",
			"it panics: at first, at main.go:29",
		},
		"other goroutine": {
			"panic: boom\n\ngoroutine 19 [running]:\nmain.New.func2()\n\texample.com/p/main.go:34 +0x25\ncreated by main.New " +
				"in goroutine 1\n\texample.com/p/main.go:34 +0x17d\n",
			"it panics: boom, at example.com/p/main.go:34",
		},
		"deadlock": {
			"fatal error: all goroutines are asleep - deadlock!\n\ngoroutine 1 [select (no cases)]:\n" +
				"main.New(0x30593bafc068?)\n\texample.com/p/main.go:32 +0x18a\n",
			"it panics: all goroutines are asleep - deadlock!, at example.com/p/main.go:32",
		},
		"no trace": {"panic: is a word\n", ""},
		"no panic": {"Error: unknown flag: --panic: x\n", ""},
	} {
		if got, ok := panicReason(tc.output); got != tc.want || ok != (tc.want != "") {
			t.Errorf("%s: got %q, %t; want %q", name, got, ok, tc.want)
		}
	}
}
