package notify

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
)

// Headers of signed requests, both ways.
const (
	headerTime = "Weir-Timestamp" // seconds since 1970, decimal
	headerSign = "Weir-Signature" // v1= and the signature in hex
)

// What is signed: a purpose, so that no notification can serve as an answer, then
// the time, then the body, with colons between.
const (
	purposeNotify = "v1:notify"
	purposeAnswer = "v1:answer"
	purposeSlack  = "v0" // Slack's own
)

// signature is the HMAC-SHA256 of purpose, time and body, in hex.
func signature(key []byte, purpose, time string, body []byte) string {
	m := hmac.New(sha256.New, key)
	m.Write([]byte(purpose + ":" + time + ":"))
	m.Write(body)
	return hex.EncodeToString(m.Sum(nil))
}

// signedAt checks a signature in constant time and returns its time. One answer
// for whatever is wrong: it tells a stranger nothing.
func signedAt(key []byte, purpose, prefix, time, sign string, body []byte) (at int64, ok bool) {
	want := prefix + signature(key, purpose, time, body)
	same := hmac.Equal([]byte(want), []byte(sign))
	at, err := strconv.ParseInt(time, 10, 64)
	return at, same && err == nil && strconv.FormatInt(at, 10) == time
}
