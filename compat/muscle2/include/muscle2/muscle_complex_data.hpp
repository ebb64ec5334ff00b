#include "complex_data.hpp"
