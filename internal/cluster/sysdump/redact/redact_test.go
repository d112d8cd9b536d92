package redact

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	key = "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEAvx3Zq0kq8n1m3o5p7r9t\n" +
		"u2w4y6z8A0C2E4G6I8K0M2O4Q6S8U0W2Y4a6\n-----END RSA PRIVATE KEY-----"
	token = "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJrdWJlcm5ldGVzIn0.c2lnbmF0dXJlLW9mLXRva2Vu"
)

func TestTextIsRedacted(t *testing.T) {
	cases := map[string]struct{ text, want string }{
		"a private key":             {"a\n" + key + "\nb", "a\nREDACTED\nb"},
		"a private key in JSON":     {`{"k":"` + strings.ReplaceAll(key, "\n", `\n`) + `"}`, `{"k":"REDACTED"}`},
		"a private key that is cut": {"a " + key[:60], "a REDACTED"},
		"a private key in base64":   {"x: " + base64.StdEncoding.EncodeToString([]byte(key)) + " y", "x: REDACTED y"},
		"a token":                   {"got " + token + ", retry", "got REDACTED, retry"},
		"a bootstrap token":         {"join with abcdef.0123456789abcdef now", "join with REDACTED now"},
		"a header":                  {"Authorization: Basic dXNlcjpodW50ZXIy", "Authorization: Basic REDACTED"},
		"a bearer token":            {"sent bearer 0123456789abcdef to x", "sent bearer REDACTED to x"},
		"a password in a URL":       {"dial postgres://app:hunter2@db:5432/x", "dial postgres://REDACTED@db:5432/x"},
		"a flag":                    {"--token=hunter2 --v=3", "--token=REDACTED --v=3"},
		"a field in YAML": {"user:\n  password: hunter2\n  name: admin",
			"user:\n  password: REDACTED\n  name: admin"},
		"a field in JSON": {`{"apiKey":"hunter2 and 3","n":1}`, `{"apiKey":"REDACTED","n":1}`},
		"a block in YAML": {"password: |-\n  hunter2hunter2\n  hunter3hunter3\nname: x",
			"password: |-\n  REDACTED\n  REDACTED\nname: x"},
		"material of a kubeconfig": {"    client-key-data: QUJDREVGRw==\n    server: https://10.0.0.1",
			"    client-key-data: REDACTED\n    server: https://10.0.0.1"},
		"a block with a short line": {"password: |-\n  abcdef\n  ghijk\nname: ghijklm",
			"password: |-\n  REDACTED\n  ghijk\nname: ghijklm"},
		"a short field":            {"password: abc\nname: abcdef", "password: REDACTED\nname: abcdef"},
		"a field in double quotes": {`level=info password="hunter 2" n=1`, `level=info password="REDACTED" n=1`},
		"a field in single quotes": {`level=info secret='hunter 3' n=1`, `level=info secret='REDACTED' n=1`},
		"a field of one letter":    {"token=x n=1", "token=REDACTED n=1"},
		"text after the marker":    {"token=REDACTED12 n=1", "token=REDACTED n=1"},
		"a redacted field":         {`token=REDACTED password="REDACTED"`, `token=REDACTED password="REDACTED"`},
		"a truth value":            {"automountServiceAccountToken: false", "automountServiceAccountToken: false"},
		"the name of a Secret":     {"secretName: my-scheduler-credentials", "secretName: my-scheduler-credentials"},
		"a file with a token":      {"tokenFile: /var/run/token", "tokenFile: /var/run/token"},
		"a certificate": {"-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
			"-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----"},
		"a message of the scheduler": {"0/3 nodes are available: 3 Insufficient cpu.",
			"0/3 nodes are available: 3 Insufficient cpu."},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, New().Text(tc.text)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestLearnedValuesAreRedactedEverywhere(t *testing.T) {
	r := New()
	r.LearnSecret(map[string][]byte{
		"password": []byte("correct horse\n"), "tls.crt": []byte("a public certificate"), "namespace": []byte("kube-system"),
		"kubeconfig": []byte("users:\n- user:\n    token: opaque-value-1\n    client-key-data: " +
			base64.StdEncoding.EncodeToString([]byte("the raw bytes of a key")) + "\n"),
	})
	secret := base64.StdEncoding.EncodeToString([]byte("correct horse"))
	text := "log: correct horse, " + secret +
		", opaque-value-1, the raw bytes of a key, in kube-system with a public certificate"
	want := "log: REDACTED, REDACTED, REDACTED, REDACTED, in kube-system with a public certificate"
	if diff := cmp.Diff(want, r.Text(text)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestLongTextIsNotReadAsConfiguration(t *testing.T) {
	const block = "password: |-\n  hunter2hunter2\n"
	for length, want := range map[int][]string{maxStructured: {"hunter2hunter2"}, maxStructured + 1: nil} {
		got := sensitiveFieldsOf(block + strings.Repeat("#", length-len(block)))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%d bytes (-want +got):\n%s", length, diff)
		}
	}
}

func TestLearnedValues(t *testing.T) {
	const line, shorter = "0123456789abcdef0123456789abcdef", "fedcba9876543210fedcba987654321"
	huge := strings.Repeat("a", longest)
	for name, tc := range map[string]struct {
		learn, text, want string
	}{
		"a value of the shortest length": {"abcdef", "abcdefg", "REDACTEDg"},
		"a short value":                  {"admin", "administrator", "administrator"},
		"a part of the marker":           {"REDACT", "REDACT it", "REDACT it"},
		"no value":                       {"", "a  b", "a  b"},
		"a long line":                    {"first\n" + line + "\n", "got " + line, "got REDACTED"},
		"a short line":                   {"first\n" + shorter + "\n", "got " + shorter, "got " + shorter},
		"the longest value":              {huge, "got " + huge, "got REDACTED"},
		"an archive":                     {huge + "a", "got " + huge + "a", "got " + huge + "a"},
	} {
		r := New()
		if got := r.Text(tc.text); got != tc.text {
			t.Errorf("%s: %.80q before it is learned", name, got)
		}
		r.Learn([]byte(tc.learn))
		if got := r.Text(tc.text); got != tc.want {
			t.Errorf("%s: %.80q, want %.80q", name, got, tc.want)
		}
	}
}

func TestLearnedValuesInBase64(t *testing.T) {
	encoded := base64.StdEncoding.EncodeToString([]byte("user: a\ntoken: opaque-value-1\n"))
	for name, tc := range map[string]struct{ learn, text, want string }{
		"a value":                    {"aHVudGVyMjI=", "hunter22 is aHVudGVyMjI=", "REDACTED is REDACTED"},
		"a field of a configuration": {encoded, "opaque-value-1", "REDACTED"},
		// Only the beginning is base64, of "scheduler".
		"a value that is not base64": {"c2NoZWR1bGVy!", "scheduler: c2NoZWR1bGVy!", "scheduler: REDACTED"},
	} {
		r := New()
		r.LearnEncoded(tc.learn)
		if got := r.Text(tc.text); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

func TestObjectsAreRedacted(t *testing.T) {
	cases := map[string]struct{ object, want string }{
		"a Secret": {
			`{"kind":"Secret","metadata":{"name":"s"},"type":"Opaque","data":{"k":"aHVudGVyMg=="},"stringData":{"x":"hunter2"}}`,
			`{"kind":"Secret","metadata":{"name":"s"},"type":"Opaque","data":{"k":"REDACTED (12 bytes)"},"stringData":{"x":"REDACTED (7 bytes)"}}`,
		},
		"last-applied": {
			`{"kind":"ConfigMap","metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{}","a":"b"}},"data":{"k":"v"}}`,
			`{"kind":"ConfigMap","metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"REDACTED","a":"b"}},"data":{"k":"v"}}`,
		},
		"a Secret in an annotation": {
			`{"kind":"ConfigMap","metadata":{"annotations":{"x/original":"{\"kind\":\"Secret\",\"data\":{\"k\":\"eA==\"}}"}}}`,
			`{"kind":"ConfigMap","metadata":{"annotations":{"x/original":"REDACTED (it has an object of kind Secret)"}}}`,
		},
		"a Secret in a ConfigMap": {
			`{"kind":"ConfigMap","data":{"m.yaml":"apiVersion: v1\nkind: Secret\nstringData: {k: v}\n"}}`,
			`{"kind":"ConfigMap","data":{"m.yaml":"REDACTED (it has an object of kind Secret)"}}`,
		},
		"binary data": {`{"kind":"ConfigMap","binaryData":{"k":"AAAA"}}`,
			`{"kind":"ConfigMap","binaryData":{"k":"REDACTED (4 bytes)"}}`},
		"variables": {
			`{"env":[{"name":"URL","value":"x"},{"name":"EMPTY","value":""},{"name":"IP","valueFrom":{"fieldRef":{"fieldPath":"status.podIP"}}}]}`,
			`{"env":[{"name":"URL","value":"REDACTED"},{"name":"EMPTY","value":""},{"name":"IP","valueFrom":{"fieldRef":{"fieldPath":"status.podIP"}}}]}`,
		},
		"a Secret without a map":    {`{"kind":"Secret","data":"aHVudGVyMg=="}`, `{"kind":"Secret","data":"REDACTED"}`},
		"annotations without a map": {`{"annotations":"password=hunter2"}`, `{"annotations":"password=REDACTED"}`},
		"a value without a name":    {`{"value":"x","n":1}`, `{"value":"x","n":1}`},
		"a value with more fields":  {`{"name":"a","value":"x","n":1}`, `{"name":"a","value":"x","n":1}`},
		"an empty sensitive key":    {`{"token":""}`, `{"token":""}`},
		"a command": {`{"command":["run","--token","hunter2","--token","--v"]}`,
			`{"command":["run","--token","REDACTED","--token","--v"]}`},
		"arguments": {`{"args":["--token","hunter2","--v","3"]}`, `{"args":["--token","REDACTED","--v","3"]}`},
		"a sensitive key": {`{"user":{"token":"hunter2","tokenFile":"/x"}}`,
			`{"user":{"token":"REDACTED","tokenFile":"/x"}}`},
		"other values": {`{"replicas":2,"ok":true,"none":null,"list":[1,"a"]}`,
			`{"replicas":2,"ok":true,"none":null,"list":[1,"a"]}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(decode(t, tc.want), New().Value(decode(t, tc.object))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func decode(t *testing.T, text string) any {
	t.Helper()
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatal(err)
	}
	return value
}

// No output has a learned value, with any text around it.
func FuzzLearnedValueIsRemoved(f *testing.F) {
	f.Add("log: ", "hunter2hunter2", " end")
	f.Add("password: ", key, "\n")
	f.Add("token=", token, "&x=1")
	f.Add(`{"a":"`, "a b\tc\nd e f", `"}`)
	f.Add("eyJ", "eyJabcdefgh.", "abcdefghi")
	f.Add("-----BEGIN PRIVATE KEY-----", "MIIEpAIBAAKCAQEA", "")
	f.Add("://", "user:pass", "@host")
	f.Fuzz(func(t *testing.T, before, secret, after string) {
		if len(strings.TrimSpace(secret)) < shortest || len(secret) > longest || strings.ContainsAny(secret, marker) {
			t.Skip("too short to be searched for, or like the marker")
		}
		r := New()
		r.Learn([]byte(secret))
		if got := r.Text(before + secret + after); strings.Contains(got, secret) {
			t.Errorf("%q is in %q", secret, got)
		}
		encoded := base64.StdEncoding.EncodeToString([]byte(secret))
		object := map[string]any{"kind": "Secret", "data": map[string]any{"k": encoded},
			"metadata": map[string]any{"annotations": map[string]any{"a": before + secret + after}}}
		text, err := json.Marshal(r.Value(object))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), encoded) {
			t.Errorf("%q is in %s", encoded, text)
		}
	})
}
