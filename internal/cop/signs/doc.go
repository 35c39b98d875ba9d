// Package signs reads a command for what makes its network use suspicious (G12):
// data that is sent, names that carry data, shells given away, secret-looking
// files, code with network imports. It adds to the classifier's facts what they do
// not say: how words are made, what a text for an interpreter holds.
//
// It is pure and never decides: a sign is an observation, and more signs are never
// less suspicious. It proves nothing; what proves a command local is the
// classifier.
package signs
