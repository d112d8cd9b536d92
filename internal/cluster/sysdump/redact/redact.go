// Package redact removes secrets from Kubernetes objects, configuration and logs: Secret data,
// private keys, tokens, passwords and kubeconfig material. It does no I/O.
package redact

import (
	"encoding/base64"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// marker replaces a secret.
const marker = "REDACTED"

const (
	// shortest is the length from which on a value is searched for in other text. Shorter ones occur
	// in ordinary words.
	shortest = 6
	// longLine is the line length from which on a key's line is searched for alone.
	longLine = 32
	// longest is the length up to which a value is searched for: longer ones are archives.
	longest = 64 << 10
)

// Redactor removes secrets. It knows how they look, and the values that it was taught with Learn.
type Redactor struct {
	known map[string]struct{}
	// replacer replaces the known values. It is nil until they are compiled.
	replacer *strings.Replacer
}

// New returns a redactor that knows no values.
func New() *Redactor { return &Redactor{known: map[string]struct{}{}} }

// Learn makes the redactor remove a value from all text, in base64 too. In YAML text, such as a
// kubeconfig, it learns the values in sensitive fields too.
func (r *Redactor) Learn(value []byte) {
	if len(value) > longest {
		return
	}
	text := string(value)
	forms := append([]string{text}, partsOf(text)...)
	for _, form := range slices.Clone(forms) {
		for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding,
			base64.RawURLEncoding} {
			forms = append(forms, encoding.EncodeToString([]byte(form)))
		}
		if decoded, err := base64.StdEncoding.DecodeString(form); err == nil {
			forms = append(forms, string(decoded))
		}
	}
	for _, form := range forms {
		if len(form) >= shortest && !strings.Contains(marker, form) {
			r.known[form] = struct{}{}
		}
	}
	r.replacer = nil
}

// partsOf returns the parts of a value that may occur alone.
func partsOf(text string) []string {
	parts := []string{strings.TrimSpace(text)}
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); len(line) >= longLine {
			parts = append(parts, line)
		}
	}
	return append(parts, sensitiveFields(text)...)
}

// replaceKnown replaces the learned values.
func (r *Redactor) replaceKnown(text string) string {
	if r.replacer == nil {
		r.replacer = replacerOf(slices.Sorted(maps.Keys(r.known)))
	}
	return r.replacer.Replace(text)
}

// LearnEncoded makes the redactor learn a value that is in base64, as in a Secret object.
func (r *Redactor) LearnEncoded(value string) {
	r.Learn([]byte(value))
	if decoded, err := base64.StdEncoding.DecodeString(value); err == nil {
		r.Learn(decoded)
	}
}

// replacerOf returns a replacer that prefers the longest value.
func replacerOf(values []string) *strings.Replacer {
	sorted := slices.Clone(values)
	slices.SortStableFunc(sorted, func(a, b string) int { return len(b) - len(a) })
	var pairs []string
	for _, v := range sorted {
		pairs = append(pairs, v, marker)
	}
	return strings.NewReplacer(pairs...)
}

// LearnSecret makes the redactor learn the values in a Secret object, by their keys. Certificates
// and namespaces are not secret.
func (r *Redactor) LearnSecret(data map[string][]byte) {
	for key, value := range data {
		if key != "namespace" && !strings.HasSuffix(key, ".crt") {
			r.Learn(value)
		}
	}
}

// sensitiveFields returns the values of sensitive fields in YAML or JSON text.
func sensitiveFields(text string) []string {
	var found []string
	for _, document := range strings.Split(text, "\n---") {
		var parsed any
		if yaml.Unmarshal([]byte(document), &parsed) == nil {
			found = appendSensitive(found, parsed)
		}
	}
	return found
}

func appendSensitive(found []string, value any) []string {
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			found = appendSensitive(found, item)
		}
	case map[string]any:
		for key, item := range v {
			if text, ok := item.(string); ok && isSensitiveKey(key) {
				for line := range strings.Lines(text) {
					if line = strings.TrimSpace(line); len(line) >= shortest {
						found = append(found, line)
					}
				}
				continue
			}
			found = appendSensitive(found, item)
		}
	}
	return found
}
