package configcheck

import (
	"regexp"
	"strings"
)

// panicStart matches how the Go runtime begins the output of a program that panics, or that it ends itself.
var panicStart = regexp.MustCompile(`(?m)^(?:panic|fatal error): `)

// recovered matches the text that the runtime appends to the value of a panic that was recovered
// and raised again.
var recovered = regexp.MustCompile(` \[recovered[^\]]*\]$`)

// panicReason returns the message of a program that ended with a stack trace, with the place that caused it, and whether it did.
func panicReason(output string) (reason string, ok bool) {
	start := panicStart.FindStringIndex(output)
	if start == nil {
		return "", false
	}
	first, rest, _ := strings.Cut(output[start[1]:], "\n")
	reason = recovered.ReplaceAllString(first, "")
	message, trace, found := strings.Cut("\n"+rest, "\ngoroutine ")
	if !found {
		return "", false
	}
	for line := range strings.Lines(message) { // of a value with more lines, and of a signal
		if text := strings.TrimSpace(line); text != "" && !strings.HasPrefix(text, "[signal ") && !strings.HasPrefix(text, "panic: ") {
			reason += " " + text
		}
	}
	if place := panicPlace(trace); place != "" {
		reason += ", at " + place
	}
	return "it panics: " + reason, true
}

// panicPlace returns the file and line of the first function in a trace that is not the runtime's.
func panicPlace(trace string) string {
	lines := strings.Split(trace, "\n")
	for i := 1; i+1 < len(lines) && lines[i] != ""; i += 2 { // a function, then its file
		if strings.HasPrefix(lines[i], "panic(") || strings.HasPrefix(lines[i], "runtime.") {
			continue
		}
		place, _, _ := strings.Cut(strings.TrimSpace(lines[i+1]), " ")
		return place
	}
	return ""
}
