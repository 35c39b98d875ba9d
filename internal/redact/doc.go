// Package redact takes secrets out of what passes through: out of texts, and out of streams, whatever the boundaries of their reads
// (V5). A secret is found in each of its forms: as it is, in base64 at every alignment and in both alphabets, in hexadecimal, in
// UTF-16, and each of these also escaped as URLs, JSON and HTML do it. It knows only what it is told, and does not
// undo encodings that are nested or compressed. Likely, apart from that, hides what merely looks like a secret, in texts that are shown to people.
package redact
