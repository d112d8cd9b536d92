package sign

import (
	"crypto/sha256"
	"fmt"
)

const hashSize = sha256.Size

// encodingDigest returns the SHA-256 digest of a payload's pre-authentication encoding: the bytes
// that a DSSE signature is over (dsse, protocol.md, "Signature Definition").
func encodingDigest(payload []byte) [hashSize]byte {
	h := sha256.New()
	fmt.Fprintf(h, "DSSEv1 %d %s %d ", len(payloadType), payloadType, len(payload))
	h.Write(payload)
	return [hashSize]byte(h.Sum(nil))
}
