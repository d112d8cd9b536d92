//go:build linux

package hostile

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"io"
	"regexp"
	"strings"
	"testing"
)

// canaries are texts of the user's machine that must not leave it, by what they are.
type canaries map[string]string

// encoded finds what may be base64 of a text that has a canary.
var encoded = regexp.MustCompile(`[A-Za-z0-9+/_-]{40,}={0,2}`)

const (
	// maxLayers bounds how deep base64 and gzip are unpacked: a Secret's data with an archive of a
	// revision within has three.
	maxLayers = 6
	// maxLayer bounds the unpacked size of one layer, in bytes.
	maxLayer = 16 << 20
)

// find returns what the canaries are that data has: as it is, or in any layer of base64 and gzip.
func (c canaries) find(data []byte) []string { return c.layer(data, maxLayers) }

func (c canaries) layer(data []byte, layers int) (found []string) {
	for name, text := range c {
		if bytes.Contains(data, []byte(text)) {
			found = append(found, name)
		}
	}
	if layers == 0 || len(found) > 0 {
		return found
	}
	if zip, err := gzip.NewReader(bytes.NewReader(data)); err == nil {
		text, _ := io.ReadAll(io.LimitReader(zip, maxLayer)) // what was read before an error counts
		return c.layer(text, layers-1)
	}
	if zip, err := zip.NewReader(bytes.NewReader(data), int64(len(data))); err == nil {
		return c.zipped(zip, layers-1)
	}
	for _, part := range encoded.FindAll(data, -1) {
		text := strings.TrimRight(string(part), "=")
		for _, e := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			if inner, err := e.DecodeString(text); err == nil {
				found = append(found, c.layer(inner, layers-1)...)
				break
			}
		}
	}
	return found
}

// zipped searches the files of an archive.
func (c canaries) zipped(archive *zip.Reader, layers int) (found []string) {
	for _, file := range archive.File {
		if from, err := file.Open(); err == nil {
			text, _ := io.ReadAll(io.LimitReader(from, maxLayer))
			found = append(found, c.layer(text, layers)...)
		}
	}
	return found
}

// The search finds what the tests of commands rely on.
func TestCanaryIsFoundInEveryLayer(t *testing.T) {
	const secret = "Zx9-canary-of-the-test-Zx9"
	c := canaries{"the key": secret}
	encode := func(text []byte) []byte { return []byte(base64.StdEncoding.EncodeToString(text)) }
	text := []byte(`{"a": "` + strings.Repeat("b", 100) + `", "key": "` + secret + `"}`)
	archive := packed(t, tarOf(t, "plugin.go", text))
	for name, data := range map[string][]byte{
		"raw": text, "base64": encode(text), "gzip": packed(t, text),
		"a Secret with an archive": []byte(`{"data": {"x": "` + string(encode(packed(t,
			[]byte(`{"content": "`+string(encode(archive))+`"}`)))) + `"}}`),
	} {
		if len(c.find(data)) != 1 {
			t.Errorf("%s: the canary is not found", name)
		}
	}
	if found := c.find(encode([]byte(strings.Repeat("nothing ", 20)))); found != nil {
		t.Errorf("found %v in another text", found)
	}
}

func packed(t testing.TB, text []byte) []byte {
	t.Helper()
	var data bytes.Buffer
	zip := gzip.NewWriter(&data)
	_, err := zip.Write(text)
	if err == nil {
		err = zip.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return data.Bytes()
}

func tarOf(t testing.TB, name string, text []byte) []byte {
	t.Helper()
	var data bytes.Buffer
	archive := tar.NewWriter(&data)
	err := archive.WriteHeader(&tar.Header{Name: name, Size: int64(len(text)), Mode: 0o600})
	if err == nil {
		_, err = archive.Write(text)
	}
	if err == nil {
		err = archive.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return data.Bytes()
}
