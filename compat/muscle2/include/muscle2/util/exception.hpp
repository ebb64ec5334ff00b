#include "../exception.hpp"
