package redact

import (
	"regexp"
	"strings"
)

// sensitiveName matches the ends of sensitive field, flag and variable names.
const sensitiveName = `(?:password|passwd|passphrase|secret|token|api[-_.]?key|access[-_.]?key(?:[-_.]?id)?|private[-_.]?key|signing[-_.]?key|encryption[-_.]?key|` +
	`client[-_.]?key|client-key-data|client-certificate-data|certificate-authority-data)`

var (
	sensitiveKey = regexp.MustCompile(`(?i)` + sensitiveName + `$`)
	// assignment matches `name: value`, `name=value` and `"name":"value"` on one line.
	assignment = regexp.MustCompile(`(?i)(` + sensitiveName +
		`["']?[ \t]*[:=][ \t]*)("(?:[^"\\\n]|\\.)*"|'[^'\n]*'|[^\s"',;&}\])]+)`)
	// plain are values that are not secret: a block in YAML, a truth value.
	plain = regexp.MustCompile(`^(?:[{\[|>].*|true|false|null|none|nil|""|'')$`)

	privateKey = regexp.MustCompile(`(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?-----END [A-Z0-9 ]*PRIVATE KEY-----`)
	// brokenKey is the beginning of a private key without its end.
	brokenKey = regexp.MustCompile(`-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----[A-Za-z0-9+/=\s\\]*`)
	// encodedPEM is base64 of text that begins with -----BEGIN.
	encodedPEM     = regexp.MustCompile(`LS0tLS1CRUdJTi[A-Za-z0-9+/=_-]{20,}`)
	jwt            = regexp.MustCompile(`eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?`)
	bootstrapToken = regexp.MustCompile(`\b[a-z0-9]{6}\.[a-z0-9]{16}\b`)
	authorization  = regexp.MustCompile(
		`(?i)(authorization["']?[ \t]*[:=][ \t]*["'\[]*)(?:(basic|bearer|digest|negotiate)[ \t]+)?[^\s"'\]]+`)
	bearer   = regexp.MustCompile(`(?i)(\bbearer[ \t]+)[A-Za-z0-9._~+/=-]{8,}`)
	userInfo = regexp.MustCompile(`(://)[^\s/@:"']*:[^\s/@"']+@`)
	// secretObject matches text that has a Secret object in YAML or JSON, escaped in JSON too.
	secretObject = regexp.MustCompile(`\bkind\\*["']?[ \t]*:[ \t]*\\*["']?Secret(?:List)?\b`)
)

// isSensitiveKey reports whether a field with that name has a secret.
func isSensitiveKey(name string) bool { return sensitiveKey.MatchString(name) }

// Text removes secrets from text: the learned values, private keys, tokens, passwords in URLs and
// values with sensitive names.
func (r *Redactor) Text(text string) string {
	text = r.replaceKnown(text)
	text = replacerOf(sensitiveFieldsOf(text)).Replace(text)
	text = privateKey.ReplaceAllLiteralString(text, marker)
	text = brokenKey.ReplaceAllLiteralString(text, marker)
	text = encodedPEM.ReplaceAllLiteralString(text, marker)
	text = jwt.ReplaceAllLiteralString(text, marker)
	text = bootstrapToken.ReplaceAllLiteralString(text, marker)
	text = authorization.ReplaceAllString(text, "${1}${2} "+marker)
	text = bearer.ReplaceAllString(text, "${1}"+marker)
	text = userInfo.ReplaceAllString(text, "${1}"+marker+"@")
	return assignment.ReplaceAllStringFunc(text, redactAssignment)
}

// maxStructured bounds the text that is parsed as YAML: logs are not.
const maxStructured = 1 << 20

// sensitiveFieldsOf returns the values of sensitive fields in text that is configuration, including
// multi-line values.
func sensitiveFieldsOf(text string) []string {
	if len(text) > maxStructured || !sensitiveAnywhere.MatchString(text) {
		return nil
	}
	return sensitiveFields(text)
}

var sensitiveAnywhere = regexp.MustCompile(`(?i)` + sensitiveName + `["']?[ \t]*:`)

// redactAssignment replaces an assignment's value.
func redactAssignment(text string) string {
	m := assignment.FindStringSubmatch(text)
	value := m[2]
	if plain.MatchString(strings.ToLower(value)) {
		return text
	}
	quote := ""
	if value[0] == '"' || value[0] == '\'' {
		quote = value[:1]
	}
	return m[1] + quote + marker + quote
}
