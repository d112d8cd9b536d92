package bundle

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/pmk-sched/pmk-sched/internal/base/safeio"
)

// encode returns the text of the manifest in an archive.
func (m *Manifest) encode() ([]byte, error) {
	text, err := json.MarshalIndent(m, "", "\t")
	return append(text, '\n'), err
}

// write writes an archive of the files below root. text is the encoded manifest. The same files
// give the same bytes.
func (m *Manifest) write(ctx context.Context, w io.Writer, text []byte, name, root string) error {
	compressed, err := compress(safeio.NewWriter(ctx, w), name)
	if err != nil {
		return err
	}
	archive := tar.NewWriter(compressed)
	first := File{Path: manifestFile, Size: int64(len(text))}
	if err := writeEntry(archive, first, bytes.NewReader(text)); err != nil {
		return err
	}
	for _, f := range m.stored() {
		if err := writeFile(archive, f, filepath.Join(root, filepath.FromSlash(f.Path))); err != nil {
			return err
		}
	}
	return errors.Join(archive.Close(), compressed.Close())
}

func writeFile(archive *tar.Writer, f File, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	return errors.Join(writeEntry(archive, f, in), in.Close())
}

func writeEntry(archive *tar.Writer, f File, content io.Reader) error {
	header := &tar.Header{
		Typeflag: tar.TypeReg, Name: f.Path, Size: f.Size, Mode: int64(f.mode()), Format: tar.FormatPAX,
	}
	if err := archive.WriteHeader(header); err != nil {
		return err
	}
	if _, err := io.Copy(archive, content); err != nil {
		return fmt.Errorf("write %s: %w", f.Path, err)
	}
	return nil
}

type plain struct{ io.Writer }

func (plain) Close() error { return nil }

// compress returns a writer that compresses as the name of the archive says.
func compress(w io.Writer, name string) (io.WriteCloser, error) {
	switch {
	case strings.HasSuffix(name, ".zst"):
		return zstd.NewWriter(w, zstd.WithEncoderConcurrency(1))
	case strings.HasSuffix(name, ".gz"), strings.HasSuffix(name, ".tgz"):
		return gzip.NewWriter(w), nil
	}
	return plain{w}, nil
}

// maxWindow is the memory in bytes that an archive's decompression may take.
const maxWindow = 64 << 20

// decompress returns a reader of an archive, which is recognized by its first bytes.
func decompress(r io.Reader) (io.ReadCloser, error) {
	buffered := bufio.NewReaderSize(r, 1<<16)
	magic, err := buffered.Peek(4)
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return nil, err
	case string(magic) == "\x28\xb5\x2f\xfd":
		z, err := zstd.NewReader(buffered, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxWindow))
		if err != nil {
			return nil, err
		}
		return z.IOReadCloser(), nil
	case strings.HasPrefix(string(magic), "\x1f\x8b"):
		return gzip.NewReader(buffered)
	}
	return io.NopCloser(buffered), nil
}

// archive is an archive that is read.
type archive struct {
	*Manifest
	// id is the manifest's digest: "sha256:…", and text the manifest.
	id   string
	text []byte

	tar   *tar.Reader
	close func() error
}

// open reads an archive's manifest, which the caller closes.
func open(ctx context.Context, file string) (*archive, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	a, err := read(safeio.NewReader(ctx, f))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("read bundle %s: %w", file, err), f.Close())
	}
	closeContent := a.close
	a.close = func() error { return errors.Join(closeContent(), f.Close()) }
	return a, nil
}

func read(r io.Reader) (*archive, error) {
	content, err := decompress(r)
	if err != nil {
		return nil, err
	}
	a := &archive{tar: tar.NewReader(content), close: content.Close}
	if err := a.readManifest(); err != nil {
		return nil, errors.Join(err, a.close())
	}
	return a, nil
}

func (a *archive) readManifest() error {
	header, err := a.tar.Next()
	if err != nil {
		return fmt.Errorf("it is not a bundle: %w", err)
	}
	if header.Name != manifestFile || header.Typeflag != tar.TypeReg || header.Size > maxManifest {
		return fmt.Errorf("it is not a bundle: expected the file %s of at most %d bytes first, got %.200q of %d bytes",
			manifestFile, maxManifest, header.Name, header.Size)
	}
	if a.text, err = io.ReadAll(a.tar); err != nil {
		return fmt.Errorf("read %s: %w", manifestFile, err)
	}
	a.id = digest(a.text)
	a.Manifest, err = parseManifest(a.text)
	return err
}

// damagedHint is for an archive that cannot be read.
const damagedHint = "copy the bundle again, or create it again"

func digest(text []byte) string {
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// extract writes the contents that wanted selects to files in dir, named by their digests. It reads
// the whole archive.
func (a *archive) extract(dir string, wanted func(File) bool) error {
	for _, f := range a.stored() {
		header, err := a.tar.Next()
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("it is truncated: expected %s", f.Path)
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", f.Path, err)
		}
		if header.Name != f.Path || header.Typeflag != tar.TypeReg || header.Size != f.Size {
			return fmt.Errorf("expected the file %s of %d bytes, got %.200q of %d bytes", f.Path, f.Size, header.Name, header.Size)
		}
		to := os.DevNull
		if wanted(f) {
			to = filepath.Join(dir, f.SHA256)
		}
		if err := writeContent(a.tar, f, to); err != nil {
			return fmt.Errorf("read %s: %w", f.Path, err)
		}
	}
	if header, err := a.tar.Next(); !errors.Is(err, io.EOF) {
		if err != nil {
			return err
		}
		return fmt.Errorf("it has a file that the manifest does not list: %.200q", header.Name)
	}
	return nil
}

// writeContent copies a content and compares its digest.
func writeContent(r io.Reader, f File, to string) error {
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, f.mode())
	if err != nil {
		return err
	}
	h := sha256.New()
	_, err = io.Copy(io.MultiWriter(out, h), r)
	if err = errors.Join(err, out.Close()); err != nil {
		return err
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != f.SHA256 {
		return fmt.Errorf("expected the digest sha256:%s, got sha256:%s", f.SHA256, got)
	}
	return nil
}
