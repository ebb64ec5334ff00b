// Names of yMMSL: identifiers, and references such as "macro.out[2]".
#ifndef TITIN_YMMSL_IDENTITY_HPP
#define TITIN_YMMSL_IDENTITY_HPP

#include <algorithm>
#include <cstddef>
#include <functional>
#include <ostream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace ymmsl {

/// A name of letters, digits and underscores that does not begin with a digit.
class Identifier {
public:
    /// Throws std::invalid_argument for any other text.
    Identifier(const std::string &contents) : text_(contents) { check(); }
    Identifier(const char *contents) : text_(contents) { check(); }

    operator std::string() const { return text_; }

    bool operator==(const Identifier &other) const { return text_ == other.text_; }
    bool operator==(const std::string &other) const { return text_ == other; }
    bool operator==(const char *other) const { return text_ == other; }
    bool operator!=(const Identifier &other) const { return text_ != other.text_; }
    bool operator!=(const std::string &other) const { return text_ != other; }
    bool operator!=(const char *other) const { return text_ != other; }

    friend bool operator==(const std::string &left, const Identifier &right) { return right == left; }
    friend bool operator!=(const std::string &left, const Identifier &right) { return right != left; }
    friend std::string operator+(const std::string &left, const Identifier &right) { return left + right.text_; }
    friend std::string operator+(const Identifier &left, const std::string &right) { return left.text_ + right; }
    friend std::ostream &operator<<(std::ostream &stream, const Identifier &name) { return stream << name.text_; }
    friend struct std::hash<Identifier>;

private:
    void check() const {
        const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
        bool good = !text_.empty() && letter(text_[0]);
        for (const char c : text_) good = good && (letter(c) || (c >= '0' && c <= '9'));
        if (!good)
            throw std::invalid_argument("'" + text_ + "' is not a valid identifier: identifiers consist of letters, digits and "
                                                      "underscores, and do not begin with a digit.");
    }

    std::string text_;
};

/// A part of a reference: an identifier, or an index.
class ReferencePart {
public:
    ReferencePart(const Identifier &name) : name_(name), index_(-1) {}
    ReferencePart(int index) : name_("_"), index_(index) {}

    bool is_identifier() const { return index_ < 0; }
    bool is_index() const { return index_ >= 0; }
    /// Throws std::runtime_error for an index.
    const Identifier &identifier() const {
        if (is_index()) throw std::runtime_error("this part of a reference is an index, not an identifier");
        return name_;
    }
    /// Throws std::runtime_error for an identifier.
    int index() const {
        if (is_identifier()) throw std::runtime_error("this part of a reference is an identifier, not an index");
        return index_;
    }

    bool operator==(const ReferencePart &other) const { return name_ == other.name_ && index_ == other.index_; }
    bool operator!=(const ReferencePart &other) const { return !(*this == other); }

private:
    Identifier name_;
    int index_;
};

/// A path of identifiers and indices, of which the first is an identifier.
class Reference {
public:
    using const_iterator = std::vector<ReferencePart>::const_iterator;

    /// Throws std::invalid_argument for a text that is no reference.
    Reference(const std::string &text) : parts_(parsed(text)) {}
    Reference(const char *text) : parts_(parsed(text)) {}
    Reference(const Identifier &name) : parts_{name} {}
    template <class Iterator>
    Reference(Iterator begin, Iterator end) : parts_(begin, end) {}

    explicit operator std::string() const {
        std::string text;
        for (const ReferencePart &part : parts_) {
            if (part.is_index()) text += "[" + std::to_string(part.index()) + "]";
            else text += (text.empty() ? "" : ".") + std::string(part.identifier());
        }
        return text;
    }

    std::size_t length() const { return parts_.size(); }
    const_iterator begin() const { return parts_.begin(); }
    const_iterator end() const { return parts_.end(); }
    const_iterator cbegin() const { return parts_.cbegin(); }
    const_iterator cend() const { return parts_.cend(); }
    const ReferencePart &operator[](int i) const { return parts_[static_cast<std::size_t>(i)]; }

    bool operator==(const Reference &other) const { return parts_ == other.parts_; }
    bool operator==(const std::string &other) const { return std::string(*this) == other; }
    bool operator==(const char *other) const { return std::string(*this) == other; }
    bool operator!=(const Reference &other) const { return !(*this == other); }
    bool operator!=(const std::string &other) const { return !(*this == other); }
    bool operator!=(const char *other) const { return !(*this == other); }
    friend bool operator==(const std::string &left, const Reference &right) { return right == left; }
    friend bool operator!=(const std::string &left, const Reference &right) { return right != left; }

    const Reference &operator+=(const ReferencePart &part) {
        parts_.push_back(part);
        return *this;
    }
    const Reference &operator+=(const std::vector<int> &indices) {
        parts_.insert(parts_.end(), indices.begin(), indices.end());
        return *this;
    }
    Reference operator+(const Reference &other) const {
        Reference sum = *this;
        sum.parts_.insert(sum.parts_.end(), other.begin(), other.end());
        return sum;
    }
    Reference operator+(const ReferencePart &part) const { return Reference(*this) += part; }
    Reference operator+(const std::vector<int> &indices) const { return Reference(*this) += indices; }

    friend std::ostream &operator<<(std::ostream &stream, const Reference &reference) {
        return stream << std::string(reference);
    }

private:
    static std::vector<ReferencePart> parsed(const std::string &text) {
        std::size_t at = std::min(text.find_first_of(".["), text.size());
        std::vector<ReferencePart> parts{Identifier(text.substr(0, at))};
        while (at < text.size()) {
            std::size_t end;
            if (text[at] == '.') {
                end = std::min(text.find_first_of(".[", at + 1), text.size());
                parts.emplace_back(Identifier(text.substr(at + 1, end - at - 1)));
            } else if (text[at] == '[') {
                end = text.find(']', at);
                if (end == std::string::npos) throw std::invalid_argument("a bracket is not closed in the reference " + text);
                parts.emplace_back(index(text.substr(at + 1, end - at - 1), text));
                ++end;
            } else {
                throw std::invalid_argument("there is '" + text.substr(at, 1) + "' behind an index in the reference " + text);
            }
            at = end;
        }
        return parts;
    }
    static int index(const std::string &digits, const std::string &text) {
        if (digits.empty() || digits.size() > 9 || digits.find_first_not_of("0123456789") != std::string::npos)
            throw std::invalid_argument("'" + digits + "' is no index in the reference " + text);
        return std::stoi(digits);
    }

    std::vector<ReferencePart> parts_;
};

} // namespace ymmsl

namespace std {
template <>
struct hash<ymmsl::Identifier> {
    size_t operator()(const ymmsl::Identifier &name) const noexcept { return hash<string>()(name.text_); }
};
template <>
struct hash<ymmsl::ReferencePart> {
    size_t operator()(const ymmsl::ReferencePart &part) const noexcept {
        return part.is_index() ? hash<int>()(part.index()) : hash<ymmsl::Identifier>()(part.identifier());
    }
};
template <>
struct hash<ymmsl::Reference> {
    size_t operator()(const ymmsl::Reference &reference) const noexcept {
        size_t mixed = 0;
        for (const ymmsl::ReferencePart &part : reference) mixed = 31 * mixed + hash<ymmsl::ReferencePart>()(part);
        return mixed;
    }
};
} // namespace std

#endif
